// Scattering with reductions, and order statistics (sampling.h).
#include <cmath>
#include <limits>
#include <vector>

#include "engine/composites/sampling.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/default_float.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::composites {
namespace {

// Returns the initial value of a reduction that excludes the input's old values.
Scalar identity(std::string_view reduce, DType dtype) {
  if (reduce == "prod") return Scalar(int64_t{1});
  if (reduce != "amax" && reduce != "amin") return Scalar(int64_t{0});
  const bool is_minimum = reduce == "amin";
  if (is_floating(dtype)) return Scalar(is_minimum ? HUGE_VAL : -HUGE_VAL);
  if (dtype == DType::kBool) return Scalar(is_minimum);
  const int bits = static_cast<int>(item_size(dtype)) * 8;
  if (is_unsigned(dtype)) return Scalar::of_unsigned(is_minimum ? UINT64_MAX >> (64 - bits) : 0);
  const int64_t largest = INT64_MAX >> (64 - bits);
  return Scalar(is_minimum ? largest : -largest - 1);
}

int64_t positive_mod(int64_t k, int64_t n) { return ((k % n) + n) % n; }

}  // namespace

Tensor expand_index(const Tensor& index, const Tensor& source, int64_t dim) {
  if (source.dim() == 0) return ops::reshape(index, Sizes{});
  Sizes index_sizes(source.sizes().size(), 1);
  index_sizes[static_cast<size_t>(shape_rules::wrap_dim(dim, source.dim()))] = index.numel();
  return ops::expand(ops::reshape(index, index_sizes), source.sizes());
}

Tensor scatter_with_reduction(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                              std::string_view reduce, bool include_self) {
  const Tensor base = include_self ? input : ops::scatter_value(input, dim, index, identity(reduce, input.dtype()));
  if (reduce == "sum" || reduce == "mean") {
    const Tensor sum = ops::scatter_add(base, dim, index, src);
    if (reduce == "sum") return sum;
    const Tensor start = ops::ones_like(input);
    const Tensor counts =
        ops::scatter_add(include_self ? start : ops::scatter_value(start, dim, index, Scalar(int64_t{0})), dim, index,
                         ops::ones_like(src));
    const Tensor divisor = ops::masked_fill(counts, ops::eq(counts, int64_t{0}), int64_t{1});
    return is_integral(input.dtype()) ? ops::floor_divide(sum, divisor) : ops::true_divide(sum, divisor);
  }
  return ops::scatter_combine(base, dim, index, src, reduce);
}

Tensor scatter_masked(const Tensor& input, const Tensor& mask, const Tensor& source) {
  check(mask.dtype() == DType::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        name(mask.dtype()));
  const Sizes sizes = shape_rules::broadcast_sizes(input.sizes(), mask.sizes());
  const Tensor wide = ops::expand(input, sizes), selected = ops::reshape(ops::expand(mask, sizes), Sizes{-1});
  // The n-th selected position reads the n-th element of `source`; positions that are not selected read the first.
  const Tensor order = ops::sub(ops::cumsum(selected, 0, DType::kInt64), int64_t{1});
  const Tensor source_index = ops::masked_fill(order, ops::logical_not(selected), int64_t{0});
  constexpr std::string_view kTooShort = "Number of elements of source < number of ones in mask";
  if (source.numel() == 0) {
    check(input.numel() == 0 || mask.numel() == 0, kTooShort);
    return ops::clone(wide);
  }
  Tensor values;
  try {
    values = ops::index_select(ops::reshape(source, Sizes{-1}), 0, source_index);
  } catch (const Error& e) {  // of a GPU: an IndexError, later
    if (e.kind() != ErrorKind::kIndex) throw;
    fail(ErrorKind::kRuntime, kTooShort);
  }
  return ops::where(ops::expand(mask, sizes), ops::reshape(values, sizes), wide);
}

Tensor fill_main_diagonal(const Tensor& input, const Scalar& value, bool wrap) {
  check(input.dim() >= 2, "dimensions must larger than 1, got ", input.dim());
  int64_t shortest = input.size(0), step = 0;
  const Sizes strides = contiguous_strides(input.sizes());
  for (int64_t d = 0; d < input.dim(); ++d) {
    check(input.dim() == 2 || input.size(d) == input.size(0),
          "all dimensions of input must be of equal length, got sizes ", input.sizes());
    shortest = std::min(shortest, input.size(d));
    step += strides[static_cast<size_t>(d)];
  }
  if (input.numel() == 0) return ops::clone(input);
  const bool again = wrap && input.dim() == 2 && input.size(0) > input.size(1) + 1;
  const int64_t count = again ? (input.numel() + step - 1) / step : shortest;
  const Tensor indices = ops::mul(ops::arange(count, DType::kInt64, input.device()), step);
  return ops::reshape(ops::index_fill(ops::reshape(input, Sizes{-1}), 0, indices, value), input.sizes());
}

Tensor quantiles(const Tensor& input, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                 std::string_view interpolation, bool ignore_nan) {
  const bool flattens = !dim || input.dim() == 0;
  const Tensor x = flattens ? ops::reshape(input, Sizes{-1}) : ops::movedim(input, Sizes{*dim}, Sizes{-1});
  const int64_t n = x.size(-1);
  const Tensor sorted = ops::sort(x, -1, false)[0], missing = ops::isnan(sorted);
  // `rank` has one row per row of x and one column per element of q.
  const Tensor share = ops::reshape(q, Sizes{-1});
  Tensor rank;
  if (ignore_nan) {
    const Tensor count = ops::sum(ops::logical_not(missing), Sizes{-1}, true);
    rank = ops::clamp_min(ops::mul(ops::to_dtype(ops::sub(count, int64_t{1}), x.dtype()), share), 0.0);
  } else {
    Sizes sizes = x.sizes();
    sizes.back() = share.numel();
    const Tensor wide = ops::expand(ops::mul(share, static_cast<double>(n - 1)), sizes);
    rank = ops::masked_fill(wide, ops::any(missing, Sizes{-1}, true), static_cast<double>(n - 1));  // a NaN sorts last
  }
  if (interpolation == "nearest") rank = ops::round_half_even(rank);
  const auto at = [&](const Tensor& r) { return ops::gather(sorted, -1, ops::to_dtype(r, DType::kInt64)); };
  const Tensor low = ops::floor(rank), high = ops::ceil(rank);
  Tensor value;
  if (interpolation == "higher") {
    value = at(high);
  } else if (interpolation == "lower" || interpolation == "nearest") {
    value = at(low);
  } else {
    const Tensor part = interpolation == "midpoint" ? ops::mul(ops::ne(high, low), 0.5) : ops::sub(rank, low);
    value = ops::lerp(at(low), at(high), ops::to_dtype(part, x.dtype()));
  }
  // Moves the dimension of q to the front, or removes it.
  if (!flattens && keepdim) {
    value = ops::movedim(ops::unsqueeze(value, -1), Sizes{-1}, Sizes{shape_rules::wrap_dim(*dim, input.dim())});
  }
  value = ops::movedim(value, Sizes{-1}, Sizes{0});
  if (flattens && keepdim) {
    Sizes value_sizes{value.size(0)};
    value_sizes.insert(value_sizes.end(), input.sizes().size(), 1);
    value = ops::reshape(value, value_sizes);
  }
  return q.dim() == 0 ? ops::squeeze_dim(value, Sizes{0}) : value;
}

Tensors median_dim_ignoring_nan(const Tensor& input, int64_t dim, bool keepdim) {
  if (input.dim() == 0) return {ops::clone(input), ops::zeros(Sizes{}, DType::kInt64, input.device())};
  const Tensors sorted = ops::sort(input, dim, false);
  const Tensor count = ops::sum(ops::logical_not(ops::isnan(sorted[0])), Sizes{dim}, true);
  const Tensor middle = ops::clamp_min(ops::floor_divide(ops::sub(count, int64_t{1}), int64_t{2}), int64_t{0});
  Tensors result{ops::gather(sorted[0], dim, middle), ops::gather(sorted[1], dim, middle)};
  if (!keepdim) {
    for (Tensor& t : result) t = ops::squeeze_dim(t, Sizes{dim});
  }
  return result;
}

Tensor median_ignoring_nan(const Tensor& input) {
  if (input.numel() == 0) return ops::median(input);
  const Tensor value = median_dim_ignoring_nan(ops::reshape(input, Sizes{-1}), 0, false)[0];
  if (!input.requires_grad()) return value;
  // All elements that equal the median share its gradient, as those of median() do. The others differ from the
  // extremum.
  const Tensor both_missing = ops::logical_and(ops::isnan(input), ops::isnan(value));
  const Tensor others = ops::logical_not(ops::logical_or(ops::eq(input, value), both_missing));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor largest = ops::amax(ops::masked_fill(input, others, -kInfinity), Sizes{}, false);
  const Tensor smallest = ops::amin(ops::masked_fill(input, others, kInfinity), Sizes{}, false);
  return ops::where(ops::eq(value, -kInfinity), smallest, largest);
}

Tensor is_member(const Tensor& elements, const Tensor& test_elements, bool invert) {
  if (test_elements.numel() == 0) return ops::full(elements.sizes(), invert, DType::kBool, elements->device);
  const DType common = promote(elements.dtype(), test_elements.dtype());
  const Tensor candidates = ops::to_dtype(ops::sort(ops::reshape(test_elements, Sizes{-1}))[0], common);
  const Tensor values = ops::to_dtype(ops::reshape(elements, Sizes{-1}), common);
  const Tensor place = ops::clamp_max(ops::searchsorted(candidates, values), candidates.numel() - 1);
  const Tensor found = ops::reshape(ops::eq(ops::index_select(candidates, 0, place), values), elements.sizes());
  return invert ? ops::logical_not(found) : found;
}

Tensor cumulative_logsumexp(const Tensor& input, int64_t dim) {
  if (input.dim() == 0) return ops::clone(input);
  const int64_t n = input.size(dim);
  Tensor result = input;
  for (int64_t shift = 1; shift < n; shift *= 2) {  // each round doubles the number of summed elements
    const Tensor sums =
        ops::logaddexp(ops::narrow(result, dim, shift, n - shift), ops::narrow(result, dim, 0, n - shift));
    result = ops::cat({ops::narrow(result, dim, 0, shift), sums}, dim);
  }
  return result;
}

Tensor trapezoid_sum(const Tensor& y, const Tensor& x, double dx, int64_t dim) {
  const DType t = y.dtype();
  const bool rounds = is_reduced_floating(t);  // in each step, unless computed in float32
  if (!rounds) return ops::sum(trapezoids(y, x, dx, dim), Sizes{dim});
  const Tensor positions =
      x && category(x.dtype()) <= Category::kFloating ? ops::to_dtype(x, promote(DType::kFloat32, x.dtype())) : x;
  const Tensor area = ops::sum(trapezoids(ops::to_dtype(y, DType::kFloat32), positions, dx, dim), Sizes{dim});
  return ops::to_dtype(area, x ? promote(t, x.dtype()) : t);
}

Tensor trapezoids(const Tensor& y, const Tensor& x, double dx, int64_t dim) {
  const int64_t n = y.size(dim), rest = std::max<int64_t>(n - 1, 0);
  const Tensor pairs = ops::add(ops::narrow(y, dim, n - rest, rest), ops::narrow(y, dim, 0, rest));
  const Tensor means = ops::true_divide(pairs, int64_t{2});
  if (!x) return ops::mul(means, dx);
  if (x.dim() != 1) return ops::mul(means, ops::diff(x, 1, dim));
  Sizes sizes(static_cast<size_t>(y.dim()), 1);
  sizes[static_cast<size_t>(shape_rules::wrap_dim(dim, y.dim()))] = rest;
  return ops::mul(means, ops::reshape(ops::diff(x, 1, 0), sizes));
}

Tensor histogram_counts(const Tensor& input, int64_t bins, double min, double max) {
  const Tensor x = ops::reshape(ops::detach(input), Sizes{-1});
  Tensor none = ops::zeros(Sizes{bins}, x.dtype(), x.device());
  if (x.numel() == 0) return none;
  Tensor low, high;
  if (min == max) {
    low = ops::amin(x, Sizes{0}, true);
    high = ops::amax(x, Sizes{0}, true);
    none = ops::add(none, ops::mul(ops::sub(high, low), 0.0));  // NaN if an element is not finite
    // A range of no length is extended by one on both sides.
    const Tensor same = ops::to_dtype(ops::eq(low, high), x.dtype());
    low = ops::sub(low, same);
    high = ops::add(high, same);
  } else {
    low = ops::full(Sizes{1}, Scalar(min), x.dtype(), x.device());
    high = ops::full(Sizes{1}, Scalar(max), x.dtype(), x.device());
  }
  const Tensor inside = ops::logical_and(ops::ge(x, low), ops::le(x, high));
  const Tensor part = ops::true_divide(ops::sub(x, low), ops::sub(high, low));
  const Tensor bin = ops::clamp_between(
      ops::to_dtype(ops::masked_fill(ops::mul(part, bins), ops::logical_not(inside), 0.0), DType::kInt64), int64_t{0},
      bins - 1);
  return ops::scatter_add(none, 0, bin, ops::to_dtype(inside, x.dtype()));
}

Tensor covariance(const Tensor& input, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  const DType dtype = dtype_rules::covariance(Arg(input.get()), Arg(fweights.get()), Arg(aweights.get()));
  const Tensor matrix = input.dim() < 2 ? ops::reshape(input, Sizes{1, input.numel()}) : input;
  const Tensor rows = ops::to_dtype(matrix, dtype);
  Tensor result;
  const auto product = [](const Tensor& left, const Tensor& right) {
    return ops::matmul(left, ops::conj_physical(ops::transpose(right, 0, 1)));
  };
  if (!fweights && !aweights) {
    const Tensor centered = ops::sub(rows, ops::mean(rows, Sizes{1}, true));
    const double freedom = static_cast<double>(rows.size(1)) - static_cast<double>(correction);
    result = ops::true_divide(product(centered, centered), std::max(freedom, 0.0));
  } else {
    // Weights without dimensions may have a wider dtype than the result.
    const Tensor importance = aweights && aweights.dim() == 0 ? ops::to_dtype(aweights, to_real(dtype)) : aweights;
    const Tensor both = !aweights ? fweights : !fweights ? importance : ops::mul(fweights, importance);
    const Tensor weights = ops::reshape(both, Sizes{-1}), total = ops::sum(weights);
    const Tensor mean = ops::true_divide(ops::sum(ops::mul(rows, weights), Sizes{1}, true), total);
    const Tensor centered = ops::sub(rows, mean);
    Tensor freedom = ops::sub(total, correction);
    if (aweights && correction != 0) {
      const Tensor squares = ops::sum(ops::mul(weights, ops::reshape(importance, Sizes{-1})));
      freedom = ops::sub(total, ops::true_divide(ops::mul(squares, correction), total));
    }
    result = ops::true_divide(product(ops::mul(centered, weights), centered), ops::clamp_min(freedom, int64_t{0}));
  }
  return rows.size(0) == 1 ? ops::reshape(result, Sizes{}) : result;
}

Tensor correlation(const Tensor& input) {
  const Tensor c = covariance(input, 1, Tensor(), Tensor());
  if (c.dim() == 0) return ops::true_divide(c, c);
  const Tensor deviations = ops::sqrt(ops::clone(ops::diagonal(c)));
  const Tensor scaled =
      ops::true_divide(ops::true_divide(c, ops::unsqueeze(deviations, 1)), ops::unsqueeze(deviations, 0));
  const auto limited = [](const Tensor& part) { return ops::clamp_between(part, int64_t{-1}, int64_t{1}); };
  if (category(scaled.dtype()) != Category::kComplex) return limited(scaled);
  return ops::complex(limited(ops::real(scaled)), limited(ops::imag(scaled)));
}

Tensor vandermonde(const Tensor& x, std::optional<int64_t> columns, bool increasing) {
  const Tensor powers = ops::arange(columns.value_or(x.numel()), DType::kInt64, x.device());
  return ops::pow(ops::unsqueeze(x, -1), increasing ? powers : ops::flip(powers, Sizes{0}));
}

Tensor exclusive_or_of_bits(const Tensor& input, std::optional<absl::Span<const int64_t>> dims, bool keepdim) {
  const bool is_real = is_floating(input.dtype());
  const Tensor bits = is_real
                          ? ops::view_of_dtype(ops::to_dtype(ops::contiguous(input), DType::kFloat64), DType::kInt64)
                          : ops::to_dtype(input, DType::kInt64);
  const int64_t ndim = bits.dim();
  std::vector<bool> reduced(static_cast<size_t>(ndim), !dims || dims->empty());
  if (dims && ndim > 0) {
    for (const int64_t dim : *dims) reduced[static_cast<size_t>(shape_rules::wrap_dim(dim, ndim))] = true;
  }
  Sizes order, kept, result;
  int64_t length = 1;
  for (int64_t d = 0; d < ndim; ++d) {
    if (reduced[static_cast<size_t>(d)]) {
      length *= bits.size(d);
      if (keepdim) result.push_back(1);
    } else {
      order.push_back(d);
      kept.push_back(bits.size(d));
      result.push_back(bits.size(d));
    }
  }
  for (int64_t d = 0; d < ndim; ++d) {
    if (reduced[static_cast<size_t>(d)]) order.push_back(d);
  }
  kept.push_back(length);
  Tensor rest = ops::reshape(ops::permute(bits, order), kept);
  if (length == 1) rest = ops::clone(rest);           // the result is not a view
  for (int64_t n = length; n > 1; n = (n + 1) / 2) {  // combines the first half with the second
    const Tensor half = ops::bitwise_xor(ops::narrow(rest, -1, 0, n / 2), ops::narrow(rest, -1, n / 2, n / 2));
    rest = n % 2 != 0 ? ops::cat({half, ops::narrow(rest, -1, n - 1, 1)}, -1) : half;
  }
  return ops::view_of_dtype(ops::reshape(rest, result), DType::kUInt64);
}

Tensor uniform_numbers(const Tensor& input) {
  const DType dtype = input.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  return ops::rand(input.sizes(), dtype, input.device());
}

double reciprocal_log1m(double p) { return 1 / std::log1p(-p); }

Tensor broadcast_to_other(const Tensor& input, const Tensor& other) {
  return ops::expand(input, shape_rules::broadcast_sizes(input.sizes(), other.sizes()));
}

Tensor rotate_90(const Tensor& input, int64_t k, SizesView dims) {
  switch (positive_mod(k, 4)) {
    case 1: return ops::transpose(ops::flip(input, Sizes{dims[1]}), dims[0], dims[1]);
    case 2: return ops::flip(input, Sizes(dims.begin(), dims.end()));
    case 3: return ops::transpose(ops::flip(input, Sizes{dims[0]}), dims[0], dims[1]);
    default: return ops::clone(input);
  }
}

}  // namespace tt::composites
