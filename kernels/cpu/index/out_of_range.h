// OutOfRange: records an index outside [0, size) found by a kernel, so that the error can be thrown after the loop.
#pragma once

#include <atomic>
#include <cstdint>

namespace tt::cpu {

// A kernel checks each index when it uses it, because another session may write the index tensor at the same time. It
// reports an index that is out of range and uses 0 instead. Thread-safe.
class OutOfRange {
 public:
  OutOfRange(int64_t dim, int64_t size) : dim_(dim), size_(size) {}
  void report(int64_t index) {
    index_.store(index, std::memory_order_relaxed);
    found_.store(true, std::memory_order_relaxed);
  }
  // Throws Error (IndexError) "index 5 is out of bounds for dimension 0 with size 3" if an index was reported.
  void rethrow() const;
  // As rethrow(), with index_select's message, "index out of range in self".
  void rethrow_index_select() const;

 private:
  int64_t dim_, size_;
  std::atomic<int64_t> index_{0};
  std::atomic<bool> found_{false};
};

}  // namespace tt::cpu
