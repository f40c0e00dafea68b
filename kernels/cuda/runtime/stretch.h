// Stretch: the launches issued to a stream between two other operations, in order.
//
// clear() keeps the allocated memory for the next stretch. Not thread-safe.
#pragma once

#include <vector>

#include "kernels/cuda/runtime/work.h"

namespace tt::cuda {

class Stretch {
 public:
  void add(const Work& work);
  void clear();
  size_t size() const { return entries_.size(); }
  const Work& operator[](size_t i) const { return *reinterpret_cast<const Work*>(&words_[entries_[i].at]); }
  // Replaces entry `i` by `work`, which must satisfy is_like().
  void replace(size_t i, const Work& work);
  // Returns a hash of the functions of the first `n` entries, without their parameters. Equal hashes only suggest equal
  // stretches: callers compare each entry with is_like().
  uint64_t hash(size_t n) const { return n == 0 ? 0 : entries_[n - 1].hash; }

 private:
  struct alignas(16) Word {
    uint64_t halves[2];
  };
  struct Entry {
    size_t at;      // in words_
    uint64_t hash;  // of this entry and all earlier ones
  };
  std::vector<Word> words_;
  std::vector<Entry> entries_;
};

}  // namespace tt::cuda
