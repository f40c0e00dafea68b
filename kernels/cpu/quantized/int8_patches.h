// int8_patches: convolutions of 8-bit integers as products of patches with filters, for the operators with 32-bit sums
// and with 8-bit results.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/common/nn/convolution_shape.h"
#include "kernels/cpu/quantized/int8_dot.h"
#include "kernels/cpu/quantized/int8_operands.h"

namespace tt::cpu {

struct Int8Convolution : ConvolutionShape {
  using ConvolutionShape::ConvolutionShape;

  int64_t pixels() const { return product(in); }
  int64_t outputs() const { return product(out); }
  int64_t taps() const { return product(kernel); }
  int64_t channels() const { return groups * in_channels; }
  int64_t out_channels_of_all() const { return groups * out_channels; }

  // The coordinates of an output or a tap.
  static Triple coordinates(int64_t index, const Triple& sizes) {
    return {index / (sizes[1] * sizes[2]), index / sizes[2] % sizes[1], index % sizes[2]};
  }
  // Whether the patches are the input's pixels.
  bool is_pointwise() const {
    return groups == 1 && taps() == 1 && product(stride) == 1 && padding == Triple{} && in == out;
  }
};

// The operand as (images, pixels, channels).
UnsignedOperand pixels_first(const Int8Convolution& c, const Tensor& input, int64_t zero_point);

// to[i][column][row] = from[i][row][column], for `count` matrices of bytes.
void transpose_bytes(int64_t count, int64_t rows, int64_t columns, const uint8_t* from, uint8_t* to);

// A block of the sums of a group's outputs and channels, of unsigned inputs that have not been centered.
struct Int8Patches {
  int64_t first;           // of all images' outputs: the first output of the block
  int64_t channel;         // of all groups: the first channel of the block
  const Int8Block& block;  // rows are outputs, columns are channels
  int32_t input_point;     // the unsigned inputs' zero point
  int32_t depth;           // elements of a patch
  const int32_t* points;   // the zero points of the block's channels
  const int32_t* totals;   // the sums of the patches of the block's outputs; null if all zero points are 0

  // The sum of output i's patch after its inputs were centered; 0 if no zero point needs it.
  int32_t centered(int64_t i) const { return totals ? totals[i] - depth * input_point : 0; }
};

// Multiplies all patches, and calls `store` with each block from several threads. `weight` is contiguous; `points` has
// a zero point per output channel of all groups.
void multiply_patches(const Int8Convolution& c, const Tensor& input, int64_t zero_point, const Tensor& weight,
                      const int32_t* points, absl::FunctionRef<void(const Int8Patches&)> store);

// Groups of one input channel: adds each tap's products to the outputs, row by row. `a` is contiguous; `out` has the
// sums as (images, channels, outputs).
void multiply_taps(const Int8Convolution& c, const UnsignedOperand& a, const Tensor& weight, const int32_t* points,
                   int32_t* out);

}  // namespace tt::cpu
