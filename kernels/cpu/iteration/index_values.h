// What a client's index tensors hold, and what happens when they lie.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/common/index/index_values.h"

namespace tt::cpu {

// `index` as int64, itself where it is that already. Throws Error (IndexError) on a dtype that
// is no integer's.
Tensor index_values(const Tensor& index);

// Collects, from any thread, an index that is not in [0, size). Kernels test the value that they
// are about to use, report it and use 0; after the loop rethrow() tells the client.
class OutOfRange {
 public:
  OutOfRange(int64_t dim, int64_t size) : dim_(dim), size_(size) {}
  void report(int64_t index) {
    index_.store(index, std::memory_order_relaxed);
    found_.store(true, std::memory_order_relaxed);
  }
  // Throws Error (IndexError) "index 5 is out of bounds for dimension 0 with size 3".
  void rethrow() const;
  // The same as index_select and its kin put it: "index out of range in self".
  void rethrow_in_self() const;

 private:
  int64_t dim_, size_;
  std::atomic<int64_t> index_{0};
  std::atomic<bool> found_{false};
};

}  // namespace tt::cpu
