// LaunchTrace: the launches added to a stream between two points, in order.
//
// clear() keeps the memory, so that the next trace allocates nothing. Not thread-safe.
#pragma once

#include <vector>

#include "kernels/cuda/runtime/kernel_launch.h"

namespace tt::cuda {

class LaunchTrace {
 public:
  void add(const KernelLaunch& launch);
  void clear();
  size_t size() const { return entries_.size(); }
  const KernelLaunch& operator[](size_t i) const {
    return *reinterpret_cast<const KernelLaunch*>(&words_[entries_[i].at]);
  }
  // Replaces entry `i`. Requires that launch.has_same_function() returns true for that entry.
  void replace(size_t i, const KernelLaunch& launch);
  // Returns a hash of the functions, not the parameters, of the first `n` entries. Traces with equal hashes may differ:
  // compare each entry with has_same_function().
  uint64_t hash(size_t n) const { return n == 0 ? 0 : entries_[n - 1].hash; }

 private:
  struct alignas(16) Word {
    uint64_t halves[2];
  };
  struct Entry {
    size_t at;      // index in words_
    uint64_t hash;  // hash of this entry and all earlier entries
  };
  std::vector<Word> words_;
  std::vector<Entry> entries_;
};

}  // namespace tt::cuda
