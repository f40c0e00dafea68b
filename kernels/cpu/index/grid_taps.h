// The positions and weights with which grid_sample reads its input: an index and a weight per sample and tap.
//
// A sample is the product over the dimensions of an interpolation of 1 (nearest), 2 (bilinear) or 4 (bicubic) elements.
// A weight is a product of one polynomial per dimension. Its derivatives are the products with the derivatives of these
// polynomials.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "kernels/cpu/iteration/accumulate_type.h"

namespace tt::cpu {

inline constexpr int64_t kOutside = -(int64_t{1} << 60);  // the sum of the offsets stays negative with this value
inline constexpr int64_t kMostTaps = 4, kMostDims = 3;

enum class GridMode { kNearest, kLinear, kCubic };
enum class GridPadding { kZeros, kBorder, kReflection };

// A coordinate's place among the elements of one dimension, and the derivative of this place.
template <typename T>
struct GridPlace {
  T position, slope;
};

// One dimension of the sampled input.
template <typename T>
struct GridAxis {
  int64_t size, stride;  // stride: elements between neighbours
  bool align_corners;
  GridPadding padding;

  T last() const { return static_cast<T>(size - 1); }
  T scale() const { return (align_corners ? last() : static_cast<T>(size)) / T(2); }
  T unnormalized(T coordinate) const {
    const T scaled = (coordinate + T(1)) * scale();
    return align_corners ? scaled : scaled - T(0.5);
  }
  // Moves a position outside the input to where the padding mode reads.
  GridPlace<T> padded(T position) const {
    if (padding == GridPadding::kZeros) return {position, T(1)};
    T slope = 1;
    if (padding == GridPadding::kReflection) {
      const T low = align_corners ? T(0) : T(-0.5), span = align_corners ? last() : static_cast<T>(size);
      if (span == T(0)) return {position * T(0), T(0)};
      const T distance = std::abs(position - low), flips = std::floor(distance / span);
      const T extra = distance - flips * span;
      const bool even = std::fmod(flips, T(2)) == T(0);
      slope = (position > low ? T(1) : position < low ? T(-1) : T(0)) * (even ? T(1) : T(-1));
      position = (even ? extra : span - extra) + low;
    }
    if (!(position > T(0)) || !(position < last())) slope = 0;
    return {position < T(0) ? T(0) : position > last() ? last() : position, slope};  // NaN stays
  }
  // The part of an input element's offset that belongs to a position, which is a whole number.
  int64_t offset(T position) const {
    const bool near = position >= T(0) && position <= last();  // last() may be rounded up
    const int64_t at = near ? static_cast<int64_t>(position) : position > T(0) ? size : 0;
    if ((!near || at >= size) && padding == GridPadding::kZeros) return kOutside;
    return std::min(at, size - 1) * stride;
  }
};

// The derivative of this order of the polynomial with four coefficients, the highest first.
template <typename T>
T tap_polynomial(T x, std::array<T, 4> c, int64_t order) {
  for (; order > 0; --order) c = {T(0), T(3) * c[0], T(2) * c[1], c[2]};
  return ((c[0] * x + c[1]) * x + c[2]) * x + c[3];
}

// The cubic convolution kernel with a = -0.75, for neighbour k (-1 to 2) of a position with this fraction.
template <typename T>
T cubic_tap(T fraction, int64_t k, int64_t order) {
  constexpr T a = T(-0.75);
  const T distance = k <= 0 ? fraction - T(k) : T(k) - fraction;
  const T value = k == 0 || k == 1 ? tap_polynomial<T>(distance, {a + 2, -(a + 3), 0, 1}, order)
                                   : tap_polynomial<T>(distance, {a, -5 * a, 8 * a, -4 * a}, order);
  return k > 0 && order % 2 == 1 ? -value : value;
}

struct Grid {
  Tensor coordinates;  // (N, samples, dimensions), x first
  Sizes size;
  GridMode mode;
  GridPadding padding;
  bool align_corners;
  int64_t batch, samples, dims, taps, tap_bits, all_taps;  // taps: per dimension, 1 << tap_bits

  Grid(const Tensor& grid, SizesView input_size, std::string_view mode_name, std::string_view padding_name,
       bool aligned)
      : coordinates(as_accumulate_type(grid)),
        size(input_size.begin(), input_size.end()),
        mode(mode_name == "nearest"   ? GridMode::kNearest
             : mode_name == "bicubic" ? GridMode::kCubic
                                      : GridMode::kLinear),
        padding(padding_name == "border"       ? GridPadding::kBorder
                : padding_name == "reflection" ? GridPadding::kReflection
                                               : GridPadding::kZeros),
        align_corners(aligned),
        batch(grid.size(0)),
        samples(batch > 0 ? grid.numel() / batch / static_cast<int64_t>(input_size.size()) : 0),
        dims(static_cast<int64_t>(input_size.size())),
        taps(mode == GridMode::kNearest  ? 1
             : mode == GridMode::kLinear ? 2
                                         : 4),
        tap_bits(taps / 2),
        all_taps(1) {
    for (int64_t d = 0; d < dims; ++d) all_taps *= taps;
  }

  // The dimensions of the input.
  template <typename T>
  std::array<GridAxis<T>, kMostDims> axes() const {
    std::array<GridAxis<T>, kMostDims> result{};
    int64_t stride = 1;
    for (int64_t d = dims - 1; d >= 0; --d) {
      const int64_t n = size[static_cast<size_t>(d)];
      result[static_cast<size_t>(d)] = {n, stride, align_corners, padding};
      stride *= n;
    }
    return result;
  }

  // Writes the offsets that one dimension's taps add for a coordinate.
  template <typename T>
  void offsets(const GridAxis<T>& axis, T coordinate, std::array<int64_t, kMostTaps>& to) const {
    const T raw = axis.unnormalized(coordinate);
    if (mode == GridMode::kCubic) {
      for (int64_t k = 0; k < 4; ++k) {
        to[static_cast<size_t>(k)] =
            axis.offset(std::trunc(axis.padded(std::floor(raw) + static_cast<T>(k - 1)).position));
      }
      return;
    }
    const T position = axis.padded(raw).position;
    const T low = mode == GridMode::kNearest ? std::nearbyint(position) : std::floor(position);
    to[0] = axis.offset(low);
    to[1] = taps > 1 ? axis.offset(low + T(1)) : 0;
  }

  // Writes the factors of one dimension's taps for a coordinate, or their derivatives of this order.
  template <typename T>
  void weights(const GridAxis<T>& axis, T coordinate, int64_t order, std::array<T, kMostTaps>& to) const {
    const T raw = axis.unnormalized(coordinate);
    if (mode == GridMode::kNearest) {
      to[0] = order == 0 ? T(1) : T(0);
      return;
    }
    T factor = 1;
    if (mode == GridMode::kCubic) {
      for (int64_t i = 0; i < order; ++i) factor *= axis.scale();
      for (int64_t k = -1; k <= 2; ++k) {
        to[static_cast<size_t>(k + 1)] = factor * cubic_tap(raw - std::floor(raw), k, order);
      }
      return;
    }
    const GridPlace<T> place = axis.padded(raw);
    const T fraction = place.position - std::floor(place.position);
    if (order == 0) {
      to[0] = T(1) - fraction;
      to[1] = fraction;
      return;
    }
    factor = order == 1 ? axis.scale() * place.slope : T(0);
    to[0] = -factor;
    to[1] = factor;
  }

  // Combines the values of the dimensions' taps: result[k * step] for all taps k. The last dimension's taps are
  // adjacent.
  template <typename V, typename Join>
  void combine(const std::array<std::array<V, kMostTaps>, kMostDims>& each, const Join& join, V* result,
               int64_t step) const {
    for (int64_t k = 0; k < all_taps; ++k) {  // shifts: divisions took almost half of the time
      int64_t rest = k;
      V value = each[static_cast<size_t>(dims - 1)][static_cast<size_t>(rest & (taps - 1))];
      for (int64_t d = dims - 2; d >= 0; --d) {
        rest >>= tap_bits;
        value = join(each[static_cast<size_t>(d)][static_cast<size_t>(rest & (taps - 1))], value);
      }
      result[k * step] = value;
    }
  }
};

}  // namespace tt::cpu
