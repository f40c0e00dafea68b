// Reading of index tensors, and detection of indices that are out of range.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/common/index_values.h"

namespace tt::cpu {

// Converts `index` to int64; returns it unchanged if it already is. Throws Error (IndexError) if its dtype is not an
// integer.
Tensor index_values(const Tensor& index);

// Records, from any thread, an index outside [0, size). A kernel checks each index before use, reports an invalid one
// and uses 0 instead; after the loop, rethrow() raises the error.
class OutOfRange {
 public:
  OutOfRange(int64_t dim, int64_t size) : dim_(dim), size_(size) {}
  void report(int64_t index) {
    index_.store(index, std::memory_order_relaxed);
    found_.store(true, std::memory_order_relaxed);
  }
  // Throws Error (IndexError) "index 5 is out of bounds for dimension 0 with size 3".
  void rethrow() const;
  // The same with index_select's wording: "index out of range in self".
  void rethrow_in_self() const;

 private:
  int64_t dim_, size_;
  std::atomic<int64_t> index_{0};
  std::atomic<bool> found_{false};
};

}  // namespace tt::cpu
