#include "engine/composites_sampling.h"

#include <cmath>
#include <functional>

#include "engine/ops.h"

namespace tt::composites {
namespace {

// One spatial dimension of a sampled input, and how coordinates outside it are brought in.
struct Axis {
  int64_t size;
  bool align_corners;
  std::string_view padding;

  double last() const { return static_cast<double>(size - 1); }
  // From [-1, 1] to elements.
  Tensor place(const Tensor& coordinate) const {
    const double n = static_cast<double>(size);
    if (align_corners) return ops::mul(ops::add(coordinate, int64_t{1}), last() / 2);
    return ops::sub(ops::mul(ops::add(coordinate, int64_t{1}), n / 2), 0.5);
  }
  Tensor inside(const Tensor& place) const {
    if (padding == "border") return ops::clamp_between(place, 0.0, last());
    if (padding == "reflection") return ops::clamp_between(reflected(place), 0.0, last());
    return place;
  }

 private:
  // Between the centers of the edges' elements, or their outer sides.
  Tensor reflected(const Tensor& place) const {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? last() : static_cast<double>(size);
    if (span == 0) return ops::mul(place, int64_t{0});
    const Tensor distance = ops::abs(ops::sub(place, low));
    const Tensor flips = ops::floor(ops::true_divide(distance, span));
    const Tensor extra = ops::sub(distance, ops::mul(flips, span));
    const Tensor even = ops::eq(ops::remainder(flips, 2.0), 0.0);
    return ops::add(ops::where(even, extra, ops::rsub(extra, span)), low);
  }
};

// One element that a place takes part of: where it is along an axis, and its weight.
struct Tap {
  Tensor at;      // whole numbers, in the grid's dtype
  Tensor weight;  // undefined: all of it
};

class Sampler {
 public:
  Sampler(const Tensor& input, const Tensor& grid, std::string_view mode, std::string_view padding, bool align_corners)
      : flat_(ops::flatten(input, 2, -1)), padding_(padding) {
    const int64_t space = input.dim() - 2;
    for (int64_t d = 0; d < space; ++d) {
      axes_.push_back({input.size(2 + d), align_corners, padding});
      const Tensor place = axes_.back().place(ops::select(grid, -1, space - 1 - d));  // the grid says x first
      taps_.push_back(taps_of(axes_.back(), place, mode));
    }
    out_ = {input.size(0), input.size(1)};
    out_.insert(out_.end(), grid.sizes().begin() + 1, grid.sizes().end() - 1);
  }
  // Sums over all combinations of the axes' taps.
  Tensor sum() {
    Tensor total;
    add_combinations(0, Tensor(), Tensor(), Tensor(), &total);
    return total;
  }

 private:
  static std::vector<Tap> taps_of(const Axis& axis, const Tensor& raw, std::string_view mode) {
    if (mode == "bicubic") return cubic_taps(axis, raw);
    const Tensor place = axis.inside(raw);
    if (mode == "nearest") return {{ops::round_half_even(place), Tensor()}};
    const Tensor low = ops::floor(place), part = ops::sub(place, low);
    return {{low, ops::rsub(part, int64_t{1})}, {ops::add(low, int64_t{1}), part}};
  }
  // The cubic convolution kernel with -0.75; each of the four neighbours is padded by itself.
  static std::vector<Tap> cubic_taps(const Axis& axis, const Tensor& place) {
    constexpr double a = -0.75;
    const Tensor low = ops::floor(place), part = ops::sub(place, low);
    const auto polynomial = [](const Tensor& x, std::initializer_list<double> coefficients) {
      Tensor value;
      for (double c : coefficients) value = value ? ops::add(ops::mul(value, x), c) : ops::add(ops::mul(x, int64_t{0}), c);
      return value;
    };
    std::vector<Tap> taps;
    for (int64_t tap = -1; tap <= 2; ++tap) {
      const Tensor distance = tap <= 0 ? ops::sub(part, tap) : ops::rsub(part, tap);
      const Tensor weight = tap == 0 || tap == 1 ? polynomial(distance, {a + 2, -(a + 3), 0, 1})
                                                 : polynomial(distance, {a, -5 * a, 8 * a, -4 * a});
      taps.push_back({axis.inside(ops::add(low, tap)), weight});
    }
    return taps;
  }

  void add_combinations(size_t axis, const Tensor& index, const Tensor& valid, const Tensor& weight, Tensor* total) {
    if (axis == axes_.size()) {
      const Tensor part = picked(index, valid, weight);
      *total = *total ? ops::add(*total, part) : part;
      return;
    }
    const int64_t size = axes_[axis].size;
    for (const Tap& tap : taps_[axis]) {
      const Tensor at = ops::to_dtype(ops::detach(tap.at), DType::kInt64);
      const Tensor safe = ops::clamp_between(at, int64_t{0}, size - 1);
      Tensor there = valid;
      if (padding_ == "zeros") {
        const Tensor here = ops::eq(safe, at);
        there = valid ? ops::logical_and(valid, here) : here;
      }
      const Tensor next = index ? ops::add(ops::mul(index, size), safe) : safe;
      const Tensor share = !tap.weight ? weight : weight ? ops::mul(weight, tap.weight) : tap.weight;
      add_combinations(axis + 1, next, there, share, total);
    }
  }
  // The elements at flat indices, a weighted term of the sum.
  Tensor picked(const Tensor& index, const Tensor& valid, const Tensor& weight) const {
    const Tensor one = ops::unsqueeze(ops::flatten(index, 1, -1), 1);
    const Tensor wide = ops::expand(one, Sizes{flat_.size(0), flat_.size(1), one.size(2)});
    Tensor values = ops::reshape(ops::gather(flat_, 2, wide), out_);
    if (valid) values = ops::masked_fill(values, ops::unsqueeze(ops::logical_not(valid), 1), 0.0);
    return weight ? ops::mul(values, ops::unsqueeze(weight, 1)) : values;
  }

  Tensor flat_;
  std::string_view padding_;
  std::vector<Axis> axes_;
  std::vector<std::vector<Tap>> taps_;
  Sizes out_;
};

// The elements' centers (or, aligned, from edge to edge) of a dimension in [-1, 1].
Tensor centers(int64_t n, bool align_corners, const Tensor& like) {
  if (n <= 1) return ops::zeros(Sizes{n}, like.dtype(), like.device());
  const double edge = align_corners ? 1 : 1 - 1 / static_cast<double>(n);
  return ops::linspace(-edge, edge, n, like.dtype(), like.device());
}

}  // namespace

Tensor sample_grid(const Tensor& input, const Tensor& grid, std::string_view mode, std::string_view padding_mode,
                   bool align_corners) {
  return Sampler(input, grid, mode, padding_mode, align_corners).sum();
}

Tensor make_affine_grid(const Tensor& theta, SizesView size, bool align_corners) {
  const SizesView space = size.subspan(2);
  const auto n = static_cast<int64_t>(space.size());
  Tensors coordinates;  // x first
  for (int64_t d = n - 1; d >= 0; --d) {
    Sizes lie(space.size(), 1);
    lie[static_cast<size_t>(d)] = space[static_cast<size_t>(d)];
    const Tensor line = ops::reshape(centers(space[static_cast<size_t>(d)], align_corners, theta), lie);
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
