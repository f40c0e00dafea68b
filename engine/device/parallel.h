// parallel_for: the process's one pool of intra-op threads.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace tt {

// Cores this process may use for one operation.
int num_threads();
void set_num_threads(int n);  // before the first operation, or between operations

// Runs body(begin, end) over [0, n), in pieces of `grain` or more, on this thread and the pool's. One caller has the
// pool; others run alone: never more threads than cores. Throws Cancelled (cancellation.h), checked after each block of
// a piece: a body may leave on cancel_requested(). Throws what a body throws. A loop within a body runs whole.
void parallel_for(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

// While it lives this thread has the pool to itself (`width()` threads), or works alone. For
// libraries that bring their own parallel loops (oneDNN, OpenBLAS).
class PoolLease {
 public:
  explicit PoolLease(int most = kAll);  // with 1 it works alone and leaves the pool to others
  ~PoolLease();
  PoolLease(const PoolLease&) = delete;
  PoolLease& operator=(const PoolLease&) = delete;
  int width() const { return width_; }

 private:
  static constexpr int kAll = 1 << 30;

  bool held_;
  int width_;
  int before_;  // what a parallel loop of this thread's used until now
};

}  // namespace tt
