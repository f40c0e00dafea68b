// Sequences: where the sequences of a jagged tensor begin and end along its ragged dimension.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Copies offsets, and lengths if there are any, and checks the copies before any element of the tensor is accessed. A
// kernel's local value; its memory is that of tensors, which the session pays for. Throws Error (RuntimeError) if a
// sequence is not within [0, total), or if sequences overlap. Requires offsets and lengths of the shape rules' sizes.
class Sequences {
 public:
  Sequences(const Tensor& offsets, const Tensor& lengths, int64_t total);

  int64_t count() const { return lengths_.numel(); }
  int64_t begin(int64_t b) const { return offsets_.data_as<int64_t>()[b]; }
  int64_t length(int64_t b) const { return lengths_.data_as<int64_t>()[b]; }
  int64_t longest() const { return longest_; }
  // The sum of the lengths: at most the total, because sequences do not overlap.
  int64_t tokens() const { return tokens_; }

 private:
  Tensor offsets_, lengths_;
  int64_t longest_ = 0, tokens_ = 0;
};

}  // namespace tt::cpu
