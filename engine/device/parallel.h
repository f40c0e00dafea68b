// parallel_for: runs loops on the process's pool of intra-op threads.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace tt {

// Number of threads that one operation may use on the calling thread: the process's, which set_num_threads() sets, or
// the thread's limit if it is lower. By default OMP_NUM_THREADS, or the number of cores.
int num_threads();
void set_num_threads(int n);  // call it before the first operation, or between operations
// Limits num_threads() on the calling thread; 0: no limit. Returns the previous limit.
int set_thread_limit(int limit);

// Runs body(begin, end) over [0, n), in pieces of at least `grain` iterations, on this thread and the pool's threads.
// One caller uses the pool; other callers run on their own thread, and so does a thread with a Turn (fair_queue.h)
// while all cores have one. A thread may call the body many times, once per block of its piece. Throws Cancelled
// (cancellation.h), checked after each block: a body may return early on cancel_requested(). Rethrows a body's
// exception. A loop nested in a body runs serially.
void parallel_for(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

// Whether the calling thread holds the pool.
bool holds_pool();

// While a PoolLease exists, its thread uses the pool exclusively (`width()` threads), or runs serially. Used for calls
// of libraries with their own parallel loops (oneDNN, OpenBLAS).
class PoolLease {
 public:
  explicit PoolLease(int max_threads = kAll);  // with max_threads = 1, runs serially and does not acquire the pool
  ~PoolLease();
  PoolLease(const PoolLease&) = delete;
  PoolLease& operator=(const PoolLease&) = delete;
  int width() const { return width_; }

 private:
  static constexpr int kAll = 1 << 30;

  bool held_;
  bool is_charged_ = false;  // to the thread's Turn, for the further cores
  std::chrono::steady_clock::time_point since_;
  int width_;
  int before_;  // the thread's previous OpenMP thread count
};

}  // namespace tt
