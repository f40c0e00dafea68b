#include "engine/composites/sampling.h"

#include <cmath>
#include <functional>

#include "engine/dispatch/ops.h"

namespace tt::composites {
namespace {

// One spatial dimension of a sampled input, and how coordinates outside the input are treated.
struct Axis {
  int64_t size;
  int64_t stride;  // elements between neighbours
  bool align_corners;
  std::string_view padding;

  double last() const { return static_cast<double>(size - 1); }
  // Converts a coordinate in [-1, 1] to an element position.
  Tensor unnormalize(const Tensor& coordinate) const {
    const double n = static_cast<double>(size);
    if (align_corners) return ops::mul(ops::add(coordinate, int64_t{1}), last() / 2);
    return ops::sub(ops::mul(ops::add(coordinate, int64_t{1}), n / 2), 0.5);
  }
  Tensor pad_position(const Tensor& position) const {
    if (padding == "border") return ops::clamp_between(position, 0.0, last());
    if (padding == "reflection") return ops::clamp_between(reflected(position), 0.0, last());
    return position;
  }

 private:
  // Reflects at the centers of the edge elements if align_corners, else at their outer edges.
  Tensor reflected(const Tensor& position) const {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? last() : static_cast<double>(size);
    if (span == 0) return ops::mul(position, int64_t{0});
    const Tensor distance = ops::abs(ops::sub(position, low));
    const Tensor flips = ops::floor(ops::true_divide(distance, span));
    const Tensor extra = ops::sub(distance, ops::mul(flips, span));
    const Tensor even = ops::eq(ops::remainder(flips, 2.0), 0.0);
    return ops::add(ops::where(even, extra, ops::rsub(extra, span)), low);
  }
};

// One position along an axis that contributes to a sample: its part of the input element's offset, and its weight.
struct Tap {
  Tensor offset;  // int64; far below zero if the position is outside and padded with zeros
  Tensor weight;  // undefined means 1
};

class Sampler {
 public:
  Sampler(const Tensor& input, const Tensor& grid, std::string_view mode, std::string_view padding, bool align_corners)
      : input_(ops::flatten(input, 2, -1)), pads_with_zeros_(padding == "zeros"), out_{input.size(0), input.size(1)} {
    const int64_t space = input.dim() - 2;
    int64_t stride = product(absl::MakeConstSpan(input.sizes()).subspan(2));
    for (int64_t d = 0; d < space; ++d) {
      const int64_t size = input.size(2 + d);
      stride = size > 0 ? stride / size : 0;
      const Axis axis{size, stride, align_corners, padding};
      const Tensor position = axis.unnormalize(ops::select(grid, -1, space - 1 - d));  // grids store x first
      taps_.push_back(taps_of(axis, ops::flatten(position, 1, -1), mode));
    }
    out_.insert(out_.end(), grid.sizes().begin() + 1, grid.sizes().end() - 1);
  }
  // Returns the samples: sums over all combinations of the axes' taps.
  Tensor sum() {
    for (const Tap& tap : taps_[0]) combine(tap, 1);
    const Tensor index = ops::stack(indices_, 1);
    const Tensor weight =
        weights_.empty() ? ops::ones(index.sizes(), input_.dtype(), input_.device()) : ops::stack(weights_, 1);
    return ops::reshape(ops::weighted_gather(input_, index, weight), out_);
  }

 private:
  std::vector<Tap> taps_of(const Axis& axis, const Tensor& raw, std::string_view mode) const {
    if (mode == "bicubic") return cubic_taps(axis, raw);
    const Tensor position = axis.pad_position(raw);
    if (mode == "nearest") return {tap(axis, ops::round_half_even(position), Tensor())};
    const Tensor low = ops::floor(position), part = ops::sub(position, low);
    return {tap(axis, low, ops::rsub(part, int64_t{1})), tap(axis, ops::add(low, int64_t{1}), part)};
  }
  // Uses the cubic convolution kernel with a = -0.75. Each of the four neighbours is padded separately.
  std::vector<Tap> cubic_taps(const Axis& axis, const Tensor& position) const {
    constexpr double a = -0.75;
    const Tensor low = ops::floor(position), part = ops::sub(position, low);
    const auto polynomial = [](const Tensor& x, std::initializer_list<double> coefficients) {
      Tensor value;
      for (double c : coefficients)
        value = value ? ops::add(ops::mul(value, x), c) : ops::add(ops::mul(x, int64_t{0}), c);
      return value;
    };
    std::vector<Tap> taps;
    for (int64_t k = -1; k <= 2; ++k) {
      const Tensor distance = k <= 0 ? ops::sub(part, k) : ops::rsub(part, k);
      const Tensor weight = k == 0 || k == 1 ? polynomial(distance, {a + 2, -(a + 3), 0, 1})
                                             : polynomial(distance, {a, -5 * a, 8 * a, -4 * a});
      taps.push_back(tap(axis, axis.pad_position(ops::add(low, k)), weight));
    }
    return taps;
  }
  Tap tap(const Axis& axis, const Tensor& position, const Tensor& weight) const {
    constexpr int64_t kOutsideOffset = -(int64_t{1} << 60);  // the sum of the offsets stays negative with this value
    const Tensor at = ops::to_dtype(ops::detach(position), DType::kInt64);
    const Tensor safe = ops::clamp_between(at, int64_t{0}, axis.size - 1);
    const Tensor offset = axis.stride == 1 ? safe : ops::mul(safe, axis.stride);
    return {pads_with_zeros_ ? ops::masked_fill(offset, ops::ne(safe, at), kOutsideOffset) : offset, weight};
  }

  // Combines `tap`, from the previous axes, with every tap of the axes from `axis` on.
  void combine(const Tap& tap, size_t axis) {
    if (axis == taps_.size()) {
      indices_.push_back(tap.offset);
      if (tap.weight) weights_.push_back(tap.weight);
      return;
    }
    for (const Tap& other : taps_[axis]) {
      const Tensor weight = tap.weight ? ops::mul(tap.weight, other.weight) : Tensor();
      combine({ops::add(tap.offset, other.offset), weight}, axis + 1);
    }
  }

  Tensor input_;
  bool pads_with_zeros_;
  std::vector<std::vector<Tap>> taps_;  // by axis
  Tensors indices_, weights_;           // one entry per combination; weights_ is empty if all weights are 1
  Sizes out_;
};

// Returns the coordinates in [-1, 1] of the centers of n elements. With align_corners, the first center is at -1 and
// the last at 1.
Tensor centers(int64_t n, bool align_corners, const Tensor& like) {
  if (n <= 1) return ops::zeros(Sizes{n}, like.dtype(), like.device());
  const double edge = align_corners ? 1 : 1 - 1 / static_cast<double>(n);
  return ops::linspace(-edge, edge, n, like.dtype(), like.device());
}

}  // namespace

Tensor sample_grid(const Tensor& input, const Tensor& grid, std::string_view mode, std::string_view padding_mode,
                   bool align_corners) {
  if (input.device().type == DeviceType::kCPU) {  // a kernel that only the CPU has
    return ops::grid_sample_values(input, grid, mode, padding_mode, align_corners);
  }
  return Sampler(input, grid, mode, padding_mode, align_corners).sum();
}

Tensor make_affine_grid(const Tensor& theta, SizesView size, bool align_corners) {
  const SizesView space = size.subspan(2);
  const auto n = static_cast<int64_t>(space.size());
  Tensors coordinates;  // x first
  for (int64_t d = n - 1; d >= 0; --d) {
    Sizes line_sizes(space.size(), 1);
    line_sizes[static_cast<size_t>(d)] = space[static_cast<size_t>(d)];
    const Tensor line = ops::reshape(centers(space[static_cast<size_t>(d)], align_corners, theta), line_sizes);
    coordinates.push_back(ops::expand(line, space));
  }
  coordinates.push_back(ops::ones(space, theta.dtype(), theta.device()));
  const Tensor base = ops::reshape(ops::stack(coordinates, -1), Sizes{1, -1, n + 1});
  Sizes result{size[0]};
  result.insert(result.end(), space.begin(), space.end());
  result.push_back(n);
  return ops::reshape(ops::matmul(base, ops::transpose(theta, 1, 2)), result);
}

}  // namespace tt::composites
