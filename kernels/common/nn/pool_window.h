// Pooling over the last two dimensions: sliding and adaptive windows, and argument checks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

using Pair = std::array<int64_t, 2>;  // height, width

// A window that slides over planes.
struct Window {
  Pair in;
  Pair out;
  Pair kernel;
  Pair stride;
  Pair padding{0, 0};
  Pair dilation{1, 1};  // max pooling only

  // The number of inputs of output o along dimension d, as PyTorch counts them. `count_padding` includes inputs in the
  // padding.
  constexpr int64_t extent(int d, int64_t o, bool count_padding) const {
    const int64_t begin = o * stride[d] - padding[d];
    const int64_t end = std::min(begin + kernel[d], in[d] + padding[d]);
    return count_padding ? end - begin : std::min(end, in[d]) - std::max<int64_t>(begin, 0);
  }
};

// The divisor of an average.
struct Divisor {
  bool count_padding;
  int64_t override;  // 0: divides by the number of inputs

  Divisor(bool count_include_pad, std::optional<int64_t> divisor_override = std::nullopt)
      : count_padding(count_include_pad), override(divisor_override.value_or(0)) {}
  // The divisor of the output at `row` and `column`.
  constexpr int64_t at(const Window& w, int64_t row, int64_t column) const {
    if (override != 0) return override;
    return w.extent(0, row, count_padding) * w.extent(1, column, count_padding);
  }
};

// Adaptive windows: output i covers inputs [bin_begin(i), bin_end(i)).
constexpr int64_t bin_begin(int64_t i, int64_t in, int64_t out) { return i * in / out; }
constexpr int64_t bin_end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

constexpr int64_t area(Pair size) { return size[0] * size[1]; }
inline Pair last_two(SizesView sizes) { return {sizes[sizes.size() - 2], sizes[sizes.size() - 1]}; }
inline int64_t planes(SizesView sizes) {
  int64_t n = 1;
  for (size_t d = 0; d + 2 < sizes.size(); ++d) n *= sizes[d];
  return n;
}

// Converts a list of one or two numbers; one number applies to height and width. Throws Error (RuntimeError) on another
// length.
inline Pair pair(absl::Span<const int64_t> list) {
  check(list.size() == 1 || list.size() == 2, "expected one or two numbers, got ", list.size());
  return {list.front(), list.back()};
}

// Throws Error (RuntimeError) unless sizes, strides and dilations are positive.
inline Window window(SizesView in, SizesView out, absl::Span<const int64_t> kernel,
                     std::optional<absl::Span<const int64_t>> stride, absl::Span<const int64_t> padding,
                     absl::Span<const int64_t> dilation = {}) {
  Window w{last_two(in), last_two(out), pair(kernel), pair(kernel), pair(padding)};
  if (stride && !stride->empty()) w.stride = pair(*stride);
  if (!dilation.empty()) w.dilation = pair(dilation);
  for (int d = 0; d < 2; ++d) {
    check(w.kernel[d] > 0 && w.stride[d] > 0 && w.padding[d] >= 0,
          "expected kernel_size > 0, stride > 0 and padding >= 0, got kernel_size ", w.kernel[d], ", stride ",
          w.stride[d], " and padding ", w.padding[d]);
    check(w.dilation[d] > 0, "expected dilation > 0, got ", w.dilation[d]);
  }
  return w;
}

inline void check_same_planes(SizesView grad, SizesView out) {
  check(planes(grad) == planes(out), "gradient sizes ", to_string(grad), " do not match input sizes ", to_string(out));
}

// Throws Error (RuntimeError) unless max pooling's gradient has one index per element.
inline void check_pool_indices(const Tensor& indices, const Tensor& grad) {
  check(indices.numel() == grad.numel(), "expected an index for each of ", grad.numel(), " gradients, got ",
        indices.numel());
}

inline std::string pool_index_error(int64_t index, int64_t plane) {
  return absl::StrCat("index ", index, " is outside a plane of ", plane, " elements");
}

// Throws Error (NotImplementedError) for a dtype without max pooling.
[[noreturn]] inline void fail_max_pool(DType dtype) {
  fail(ErrorKind::kNotImplemented, "max pooling is not implemented for ", name(dtype));
}

}  // namespace tt
