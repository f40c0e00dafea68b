// Sequences: where the sequences of a jagged tensor begin and end along its ragged dimension.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Reads offsets, and lengths if there are any, and checks them before any element of the tensor is accessed. A kernel's
// local value. Throws Error (RuntimeError) if a sequence is not within [0, total), or if sequences overlap.
class Sequences {
 public:
  Sequences(const Tensor& offsets, const Tensor& lengths, int64_t total);

  int64_t count() const { return static_cast<int64_t>(begins_.size()); }
  int64_t begin(int64_t b) const { return begins_[static_cast<size_t>(b)]; }
  int64_t length(int64_t b) const { return lengths_[static_cast<size_t>(b)]; }
  int64_t longest() const { return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end()); }
  // The sum of the lengths: at most the total, because sequences do not overlap.
  int64_t tokens() const;

 private:
  std::vector<int64_t> begins_, lengths_;
};

}  // namespace tt::cpu
