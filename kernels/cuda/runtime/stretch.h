// Stretch: the work that was given to a stream between two points, in order.
//
// Its memory is kept when it is cleared, so that the next one allocates nothing. One thread's at a time.
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
  // Puts `work`, which is like it, in the place of entry `i`.
  void replace(size_t i, const Work& work);
  // Of the functions of the first `n` entries, whatever their parameters. Equal hashes are taken for equal stretches as
  // a guess only: what is done depends on is_like() of each entry.
  uint64_t hash(size_t n) const { return n == 0 ? 0 : entries_[n - 1].hash; }

 private:
  struct alignas(16) Word {
    uint64_t halves[2];
  };
  struct Entry {
    size_t at;      // in words_
    uint64_t hash;  // of this entry and those before
  };
  std::vector<Word> words_;
  std::vector<Entry> entries_;
};

}  // namespace tt::cuda
