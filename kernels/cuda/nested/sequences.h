// Sequences: where the sequences of a jagged tensor begin and end along its ragged dimension, in device memory.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"
#include "kernels/common/sort/searchsorted.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// Sequence b is at [begins[b], begins[b] + lengths[b]) within [0, total). Sequences do not overlap. Captured by value.
struct SequenceTable {
  const int64_t* begins;
  const int64_t* lengths;
  int64_t count, total;

  // Returns the last sequence that begins at or before a token, or -1. No other sequence can contain the token.
  TT_FUNCTION int64_t last_before(int64_t token) const { return insertion_point(begins, count, token, true) - 1; }
  TT_FUNCTION bool contains(int64_t b, int64_t token) const { return b >= 0 && token - begins[b] < lengths[b]; }
  // Returns where the sequence after b begins, or the total. Greater than any token for which last_before() is b.
  TT_FUNCTION int64_t next_begin(int64_t b) const { return b + 1 < count ? begins[b + 1] : total; }
};

// Copies offsets, and lengths if there are any, and checks the copies on the device. If a sequence is not within
// [0, total), or sequences overlap, the call's results become the CPU's error, and all sequences are empty, so that
// kernels access nothing. A kernel's local value; its memory is that of tensors. Requires offsets and lengths of the
// shape rules' sizes, on the device.
class Sequences {
 public:
  Sequences(const Tensor& offsets, const Tensor& lengths, int64_t total);

  SequenceTable table() const {
    return {offsets_.data_as<int64_t>(), lengths_.data_as<int64_t>(), lengths_.numel(), total_};
  }

 private:
  Tensor offsets_, lengths_;
  int64_t total_;
};

}  // namespace tt::cuda
