#include "kernels/cpu/quantized/int8_patches.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/cpu/quantized/int8_weights.h"

namespace tt::cpu {
namespace {

constexpr int64_t kPatchBytes = int64_t{2} << 20;  // of the patches that are gathered at a time
constexpr int64_t kSide = 8;                       // of the squares that transpose_bytes() transposes in registers

// Exchanges the bits of `mask` in b with those `shift` higher in a.
void exchange(uint64_t& a, uint64_t& b, int shift, uint64_t mask) {
  const uint64_t differing = ((a >> shift) ^ b) & mask;
  b ^= differing;
  a ^= differing << shift;
}

void transpose_square(const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step) {
  std::array<uint64_t, kSide> r;
  for (int64_t i = 0; i < kSide; ++i) std::memcpy(&r[i], from + i * from_step, sizeof(r[i]));
  for (int i : {0, 1, 2, 3}) exchange(r[i], r[i + 4], 32, 0x00000000FFFFFFFF);
  for (int i : {0, 1, 4, 5}) exchange(r[i], r[i + 2], 16, 0x0000FFFF0000FFFF);
  for (int i : {0, 2, 4, 6}) exchange(r[i], r[i + 1], 8, 0x00FF00FF00FF00FF);
  for (int64_t i = 0; i < kSide; ++i) std::memcpy(to + i * to_step, &r[i], sizeof(r[i]));
}

// Gathers the patches of outputs [first, first + count), counted over all images, for one group.
void gather(const Int8Convolution& c, int64_t group, const uint8_t* x, uint8_t zero_point, int64_t first, int64_t count,
            uint8_t* patches) {
  const int64_t outputs = c.outputs(), channels = c.in_channels, depth = c.taps() * channels, width = c.kernel[2];
  parallel_for(count, std::max<int64_t>(1, (int64_t{1} << 14) / depth), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = (first + i) / outputs;
      const uint8_t* from = x + image * c.pixels() * c.channels() + group * channels;
      Int8Convolution::Triple at = Int8Convolution::coordinates((first + i) % outputs, c.out);
      for (int d = 0; d < 3; ++d) at[d] = at[d] * c.stride[d] - c.padding[d];
      const bool is_run = c.groups == 1 && c.dilation[2] == 1 && at[2] >= 0 && at[2] + width <= c.in[2];
      uint8_t* to = patches + i * depth;
      for (int64_t row = 0; row < c.kernel[0] * c.kernel[1]; ++row, to += width * channels) {
        const int64_t plane_at = at[0] + row / c.kernel[1] * c.dilation[0];
        const int64_t row_at = at[1] + row % c.kernel[1] * c.dilation[1];
        if (plane_at < 0 || plane_at >= c.in[0] || row_at < 0 || row_at >= c.in[1]) {
          std::memset(to, zero_point, width * channels);
          continue;
        }
        const int64_t line = (plane_at * c.in[1] + row_at) * c.in[2];
        if (is_run) {
          std::memcpy(to, from + (line + at[2]) * channels, width * channels);
          continue;
        }
        for (int64_t t = 0; t < width; ++t) {
          const int64_t pixel = at[2] + t * c.dilation[2];
          if (pixel < 0 || pixel >= c.in[2])
            std::memset(to + t * channels, zero_point, channels);
          else
            std::memcpy(to + t * channels, from + (line + pixel) * c.channels(), channels);
        }
      }
    }
  });
}

// The sums of each patch's elements.
void patch_sums(int64_t count, int64_t depth, const uint8_t* patches, int32_t* sums) {
  parallel_for(count, std::max<int64_t>(1, (int64_t{1} << 16) / depth), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int32_t sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += patches[i * depth + p];
      sums[i] = sum;
    }
  });
}

}  // namespace

void transpose_bytes(int64_t count, int64_t rows, int64_t columns, const uint8_t* from, uint8_t* to) {
  constexpr int64_t kBlock = 64;  // columns of a task
  const int64_t blocks = (columns + kBlock - 1) / kBlock;
  parallel_for(count * blocks, std::max<int64_t>(1, (int64_t{1} << 15) / (rows * kBlock)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t first = task % blocks * kBlock, last = std::min(first + kBlock, columns);
                   const uint8_t* x = from + task / blocks * rows * columns;
                   uint8_t* y = to + task / blocks * rows * columns;
                   for (int64_t r = 0; r < rows; r += kSide) {
                     for (int64_t column = first; column < last; column += kSide) {
                       if (r + kSide <= rows && column + kSide <= last) {
                         transpose_square(x + r * columns + column, columns, y + column * rows + r, rows);
                         continue;
                       }
                       for (int64_t i = r; i < std::min(r + kSide, rows); ++i) {
                         for (int64_t j = column; j < std::min(column + kSide, last); ++j)
                           y[j * rows + i] = x[i * columns + j];
                       }
                     }
                   }
                 }
               });
}

UnsignedOperand pixels_first(const Int8Convolution& c, const Tensor& input, int64_t zero_point) {
  if (has_channels_last(input)) {
    const Geometry rows{Sizes{input.numel()}, Sizes{1}, input->offset};
    return as_unsigned(view_of(input, rows), zero_point);
  }
  const UnsignedOperand a = as_unsigned(input, zero_point);
  const UnsignedOperand result{empty(Sizes{input.numel()}, DType::kUInt8, input.device()), a.zero_point};
  transpose_bytes(c.images, c.channels(), c.pixels(), a.values.data_as<const uint8_t>(),
                  result.values.data_as<uint8_t>());
  return result;
}

void multiply_patches(const Int8Convolution& c, const Tensor& input, int64_t zero_point, const Tensor& weight,
                      const int32_t* points, absl::FunctionRef<void(const Int8Patches&)> store) {
  const UnsignedOperand a = pixels_first(c, input, zero_point);
  const Tensor& x = a.values;
  const Tensor packed = packed_filters(weight, c.groups, c.images * c.outputs());
  const Tensor w = empty(Sizes{packed ? 0 : weight.numel()}, DType::kInt8, x.device());
  if (!packed) {
    taps_first(weight.size(0), c.in_channels, c.taps(), weight.data_as<const int8_t>(), w.data_as<int8_t>());
  }
  const int64_t depth = c.taps() * c.in_channels, all = c.images * c.outputs();
  const int64_t step = std::clamp<int64_t>(kPatchBytes / depth, 1, all);
  const Tensor patches = empty(Sizes{c.is_pointwise() ? 0 : step * depth}, DType::kUInt8, x.device());
  const Tensor sums = empty(Sizes{step}, DType::kInt32, x.device());
  auto* gathered = patches.data_as<uint8_t>();
  for (int64_t group = 0; group < c.groups; ++group) {
    const int32_t* zero = points + group * c.out_channels;
    const bool symmetric = std::all_of(zero, zero + c.out_channels, [](int32_t n) { return n == 0; });
    for (int64_t first = 0; first < all; first += step) {
      const int64_t count = std::min(step, all - first);
      const uint8_t* buffer = gathered;
      if (c.is_pointwise())
        buffer = x.data_as<const uint8_t>() + first * depth;
      else
        gather(c, group, x.data_as<const uint8_t>(), static_cast<uint8_t>(a.zero_point), first, count, gathered);
      if (!symmetric) patch_sums(count, depth, buffer, sums.data_as<int32_t>());
      Int8Product product{count, c.out_channels, depth, buffer, depth, nullptr, depth};
      if (packed) {
        product.packed = packed.data_as<const int8_t>() + group * packed_weights_bytes(c.out_channels, depth);
      } else {
        product.b = w.data_as<const int8_t>() + group * c.out_channels * depth;
      }
      int8_product(product, [&](const Int8Block& t) {
        const int32_t* totals = symmetric ? nullptr : sums.data_as<const int32_t>() + t.row;
        store({first + t.row, group * c.out_channels + t.column, t, a.zero_point, static_cast<int32_t>(depth),
               zero + t.column, totals});
      });
    }
  }
}

void multiply_taps(const Int8Convolution& c, const UnsignedOperand& a, const Tensor& weight, const int32_t* points,
                   int32_t* out) {
  const int64_t taps = c.taps(), channels = c.out_channels_of_all(), outputs = c.outputs();
  const uint8_t* x = a.values.data_as<const uint8_t>();
  const int8_t* w = weight.data_as<const int8_t>();
  parallel_for(c.images * channels, std::max<int64_t>(1, (int64_t{1} << 14) / (outputs * taps)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) {
                   const int64_t image = plane / channels, channel = plane % channels;
                   const uint8_t* from = x + (image * c.groups + channel / c.out_channels) * c.pixels();
                   int32_t* to = out + plane * outputs;
                   std::fill_n(to, outputs, 0);
                   for (int64_t t = 0; t < taps; ++t) {
                     const int32_t factor = w[channel * taps + t] - points[channel];
                     const Int8Convolution::Triple tap = Int8Convolution::coordinates(t, c.kernel);
                     for (int64_t row = 0; row < c.out[0] * c.out[1]; ++row) {
                       const int64_t offset = tap[2] * c.dilation[2] - c.padding[2], stride = c.stride[2];
                       const int64_t depth_at = row / c.out[1] * c.stride[0] - c.padding[0] + tap[0] * c.dilation[0];
                       const int64_t row_at = row % c.out[1] * c.stride[1] - c.padding[1] + tap[1] * c.dilation[1];
                       if (depth_at < 0 || depth_at >= c.in[0] || row_at < 0 || row_at >= c.in[1]) continue;
                       const uint8_t* line = from + (depth_at * c.in[1] + row_at) * c.in[2];
                       const int64_t low = offset < 0 ? (-offset + stride - 1) / stride : 0;
                       const int64_t high =
                           std::min(c.out[2], c.in[2] > offset ? (c.in[2] - 1 - offset) / stride + 1 : 0);
                       for (int64_t i = low; i < high; ++i) {
                         to[row * c.out[2] + i] += (line[i * stride + offset] - a.zero_point) * factor;
                       }
                     }
                   }
                 }
               });
}

}  // namespace tt::cpu
