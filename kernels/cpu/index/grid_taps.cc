// The positions and weights with which grid_sample reads its input: an index and a weight per sample and tap.
//
// A sample is the product over the dimensions of an interpolation of 1 (nearest), 2 (bilinear) or 4 (bicubic) elements.
// A weight is a product of one polynomial per dimension. Its derivatives are the products with the derivatives of these
// polynomials, which the operator's `order` selects; so the operator's gradient uses the operator itself.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

constexpr int64_t kOutside = -(int64_t{1} << 60);  // the sum of the offsets stays negative with this value
constexpr int64_t kMostTaps = 4, kMostDims = 3;
constexpr int64_t kTaskWork = 1 << 12;  // minimum samples per task of the pool

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

// A coordinate's place among the elements of one dimension, and the derivative of this place.
template <typename T>
struct Place {
  T position, slope;
};

// One dimension of the sampled input.
template <typename T>
struct Axis {
  int64_t size, stride;  // stride: elements between neighbours
  bool align_corners;
  Padding padding;

  T last() const { return static_cast<T>(size - 1); }
  T scale() const { return (align_corners ? last() : static_cast<T>(size)) / T(2); }
  T unnormalized(T coordinate) const {
    const T scaled = (coordinate + T(1)) * scale();
    return align_corners ? scaled : scaled - T(0.5);
  }
  // Moves a position outside the input to where the padding mode reads.
  Place<T> padded(T position) const {
    if (padding == Padding::kZeros) return {position, T(1)};
    T slope = 1;
    if (padding == Padding::kReflection) {
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
    const bool inside = position >= T(0) && position <= last();
    if (!inside && padding == Padding::kZeros) return kOutside;
    return (inside ? static_cast<int64_t>(position) : position > T(0) ? size - 1 : 0) * stride;
  }
};

// The derivative of this order of the polynomial with four coefficients, the highest first.
template <typename T>
T polynomial(T x, std::array<T, 4> c, int64_t order) {
  for (; order > 0; --order) c = {T(0), T(3) * c[0], T(2) * c[1], c[2]};
  return ((c[0] * x + c[1]) * x + c[2]) * x + c[3];
}

// The cubic convolution kernel with a = -0.75, for neighbour k (-1 to 2) of a position with this fraction.
template <typename T>
T cubic(T fraction, int64_t k, int64_t order) {
  constexpr T a = T(-0.75);
  const T distance = k <= 0 ? fraction - T(k) : T(k) - fraction;
  const T value = k == 0 || k == 1 ? polynomial<T>(distance, {a + 2, -(a + 3), 0, 1}, order)
                                   : polynomial<T>(distance, {a, -5 * a, 8 * a, -4 * a}, order);
  return k > 0 && order % 2 == 1 ? -value : value;
}

struct Grid {
  Tensor coordinates;  // (N, samples, dimensions), x first
  Sizes size;
  Mode mode;
  Padding padding;
  bool align_corners;
  int64_t batch, samples, dims, taps, tap_bits, all_taps;  // taps: per dimension, 1 << tap_bits

  Grid(const Tensor& grid, SizesView input_size, std::string_view mode_name, std::string_view padding_name,
       bool aligned)
      : coordinates(as_accumulate_type(grid)),
        size(input_size.begin(), input_size.end()),
        mode(mode_name == "nearest"   ? Mode::kNearest
             : mode_name == "bicubic" ? Mode::kCubic
                                      : Mode::kLinear),
        padding(padding_name == "border"       ? Padding::kBorder
                : padding_name == "reflection" ? Padding::kReflection
                                               : Padding::kZeros),
        align_corners(aligned),
        batch(grid.size(0)),
        samples(batch > 0 ? grid.numel() / batch / static_cast<int64_t>(input_size.size()) : 0),
        dims(static_cast<int64_t>(input_size.size())),
        taps(mode == Mode::kNearest  ? 1
             : mode == Mode::kLinear ? 2
                                     : 4),
        tap_bits(taps / 2),
        all_taps(1) {
    for (int64_t d = 0; d < dims; ++d) all_taps *= taps;
  }

  // The dimensions of the input.
  template <typename T>
  std::array<Axis<T>, kMostDims> axes() const {
    std::array<Axis<T>, kMostDims> result{};
    int64_t stride = 1;
    for (int64_t d = dims - 1; d >= 0; --d) {
      const int64_t n = size[static_cast<size_t>(d)];
      result[static_cast<size_t>(d)] = {n, stride, align_corners, padding};
      stride *= n;
    }
    return result;
  }

  // Computes a value per sample and tap: `values(axis, d, coordinate, v)` stores those of one dimension's taps in v,
  // and `join` combines those of several dimensions. The last dimension's taps are adjacent.
  template <typename T, typename V, typename Values, typename Join>
  void for_each_sample(V* to, const Values& values, const Join& join) const {
    const std::array<Axis<T>, kMostDims> of = axes<T>();
    const T* from = coordinates.data_as<T>();
    parallel_for(batch * samples, kTaskWork, [&](int64_t begin, int64_t end) {
      int64_t n = begin / samples, sample = begin % samples;
      for (int64_t i = begin; i < end; ++i) {
        std::array<std::array<V, kMostTaps>, kMostDims> each;
        for (int64_t d = 0; d < dims; ++d) {
          values(of[static_cast<size_t>(d)], d, from[i * dims + dims - 1 - d], each[static_cast<size_t>(d)]);
        }
        V* const result = to + n * all_taps * samples + sample;
        for (int64_t k = 0; k < all_taps; ++k) {  // shifts: divisions took almost half of the time
          int64_t rest = k;
          V value = each[static_cast<size_t>(dims - 1)][static_cast<size_t>(rest & (taps - 1))];
          for (int64_t d = dims - 2; d >= 0; --d) {
            rest >>= tap_bits;
            value = join(each[static_cast<size_t>(d)][static_cast<size_t>(rest & (taps - 1))], value);
          }
          result[k * samples] = value;
        }
        if (++sample == samples) {
          sample = 0;
          ++n;
        }
      }
    });
  }
};

}  // namespace

void grid_tap_index(const Tensor& grid, SizesView size, std::string_view mode, std::string_view padding_mode,
                    bool align_corners, Tensor& out) {
  const Grid taps(grid, size, mode, padding_mode, align_corners);
  with_real(taps.coordinates.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto offsets = [&](const Axis<T>& axis, int64_t, T coordinate, std::array<int64_t, kMostTaps>& to) {
      const T raw = axis.unnormalized(coordinate);
      if (taps.mode == Mode::kCubic) {
        for (int64_t k = 0; k < 4; ++k) {
          to[static_cast<size_t>(k)] =
              axis.offset(std::trunc(axis.padded(std::floor(raw) + static_cast<T>(k - 1)).position));
        }
        return;
      }
      const T position = axis.padded(raw).position;
      const T low = taps.mode == Mode::kNearest ? std::nearbyint(position) : std::floor(position);
      to[0] = axis.offset(low);
      to[1] = taps.taps > 1 ? axis.offset(low + T(1)) : 0;
    };
    taps.template for_each_sample<T>(out.data_as<int64_t>(), offsets, [](int64_t a, int64_t b) { return a + b; });
  });
}

void grid_tap_weight(const Tensor& grid, SizesView size, std::string_view mode, std::string_view padding_mode,
                     bool align_corners, SizesView order, Tensor& out) {
  const Grid taps(grid, size, mode, padding_mode, align_corners);
  AccumulateBuffer result(out);
  with_real(taps.coordinates.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto weights = [&](const Axis<T>& axis, int64_t d, T coordinate, std::array<T, kMostTaps>& to) {
      const int64_t n = std::min<int64_t>(order[static_cast<size_t>(d)], 4);  // higher derivatives are zero, too
      const T raw = axis.unnormalized(coordinate);
      if (taps.mode == Mode::kNearest) {
        to[0] = n == 0 ? T(1) : T(0);
        return;
      }
      T factor = 1;
      if (taps.mode == Mode::kCubic) {
        for (int64_t i = 0; i < n; ++i) factor *= axis.scale();
        for (int64_t k = -1; k <= 2; ++k) to[static_cast<size_t>(k + 1)] = factor * cubic(raw - std::floor(raw), k, n);
        return;
      }
      const Place<T> place = axis.padded(raw);
      const T fraction = place.position - std::floor(place.position);
      if (n == 0) {
        to[0] = T(1) - fraction;
        to[1] = fraction;
        return;
      }
      factor = n == 1 ? axis.scale() * place.slope : T(0);
      to[0] = -factor;
      to[1] = factor;
    };
    taps.template for_each_sample<T>(result.template data<T>(), weights, [](T a, T b) { return a * b; });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
