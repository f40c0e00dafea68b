#include "engine/composites/composites.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/dispatch/expression.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/default_float.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {

namespace {

Tensor as_inferred(Tensor result, const TensorMeta& inferred) {
  check(result.sizes() == inferred.sizes, "expected a composite result of sizes ", inferred.sizes, ", got ",
        result.sizes());
  if (result.dtype() != inferred.dtype) result = ops::to_dtype(result, inferred.dtype);
  return result.strides() == inferred.strides ? result : ops::contiguous(result);
}

}  // namespace

void finish_composite(Call& call, Tensors results) {
  if (call.op->is_dynamic) {
    call.outputs = std::move(results);
    return;
  }
  check(results.size() == call.inferred.outputs.size(), "expected ", call.inferred.outputs.size(),
        " composite results, got ", results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = as_inferred(std::move(results[i]), call.inferred.outputs[i]);
  }
  call.outputs = std::move(results);
}

void finish_composite(Call& call, Tensor result) { finish_composite(call, Tensors{std::move(result)}); }

namespace composites {

int64_t product(SizesView list) { return std::accumulate(list.begin(), list.end(), int64_t{1}, std::multiplies<>()); }

Sizes prepend_ones(SizesView list, int64_t n) {
  Sizes result(list.begin(), list.end());
  while (static_cast<int64_t>(result.size()) < n) result.insert(result.begin(), 1);
  return result;
}

DType dtype_or(std::optional<DType> given, DType otherwise) { return given.value_or(otherwise); }
Device device_or(std::optional<Device> given, Device otherwise) { return given.value_or(otherwise); }

namespace {

// Returns a bound of clamp() as integers of the dtype `t` can hold it. A bound beyond the dtype's range has no effect
// (dtype_rules::clamp rejects others), and becomes its limit, because kernels compute in 32 or 64 bits.
Operand within_range(const Operand& bound, DType t) {
  if (!bound.arg().is_number() || !is_integral(t) || t == DType::kBool) return bound;
  const Scalar number = bound.arg().scalar();
  if (number.is_beyond_int() && t == DType::kUInt64) return bound;
  const size_t bits = 8 * item_size(t) - (is_unsigned(t) ? 0 : 1);
  const int64_t highest = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  const int64_t lowest = is_unsigned(t) ? 0 : -highest - 1;
  return number.is_beyond_int() ? highest : std::clamp(number.to_int(), lowest, highest);
}

}  // namespace

Tensor clamped(const Operand& input, const Operand& min, const Operand& max) {
  const DType t = dtype_rules::clamp(input.arg(), min.arg(), max.arg());
  const Operand low = within_range(min, t), high = within_range(max, t);
  if (!min.has_value()) return ops::clamp_max(input, high);
  return max.has_value() ? ops::clamp_between(input, low, high) : ops::clamp_min(input, low);
}

Tensor normal_from_tensors(const Operand& mean, const Operand& std) {
  const auto constant = [](const Operand& x) { return x.arg().is_number() ? Tensor() : ops::detach(x); };
  const Tensor mean_tensor = constant(mean), std_tensor = constant(std);
  const Operand mean_value = mean_tensor ? Operand(mean_tensor) : mean;
  const Operand std_value = std_tensor ? Operand(std_tensor) : std;
  const Tensor& any = mean_tensor ? mean_tensor : std_tensor;  // none: both may be numbers
  const Tensor never = ops::full({}, false, DType::kBool, any ? any.device() : Device());
  const Tensor scale = ops::where(never, mean_value, std_value);  // broadcasts to the result's shape
  const Tensor samples = ops::add(ops::mul(ops::randn_like(scale, std::nullopt, std::nullopt), scale), mean_value);
  const Tensor valid = std_tensor ? ops::add(samples, ops::check_range(std_tensor, "std")) : samples;
  // As in PyTorch, the result depends on the arguments with derivatives of 0.
  return ops::where(never, mean, ops::where(never, std, valid));
}

Tensor to_double(const Operand& value) {
  const DType dtype = is_complex(dtype_of(value)) ? DType::kComplex128 : DType::kFloat64;
  if (value.arg().is_number()) return ops::full({}, value.arg().scalar(), dtype, std::nullopt);
  return ops::to_dtype(Tensor::from(value.arg().tensor), dtype);
}

Tensor next_representable(const Operand& input, const Operand& other) {
  const DType dtype = dtype_rules::promote(input.arg(), other.arg());
  if (item_size(dtype) != 2) return ops::nextafter_wide(input, other);
  // The kernel computes in float, so numbers and tensors of other dtypes are rounded first.
  std::optional<Device> device;  // none for two numbers
  for (const Operand* operand : {&input, &other}) {
    if (!operand->arg().is_number()) device = operand->arg().tensor->device;
  }
  const auto rounded = [&](const Arg& value) {
    return ops::to_dtype(
        value.is_number() ? ops::full({}, value.scalar(), DType::kFloat64, device) : Tensor::from(value.tensor), dtype);
  };
  const bool is_half = dtype == DType::kFloat16;
  return ops::nextafter_rounded(rounded(input.arg()), rounded(other.arg()), is_half ? 0x1.01p-11 : 0x1.08p-8,
                                is_half ? 0x1.8p-25 : 0x1.8p-134, is_half ? 65504 : 0x1.fep127);
}

Tensor clamp_to_unit(const Tensor& input, std::optional<double> eps) {
  // The lower bound is applied last: if eps exceeds one half, it exceeds the upper bound and takes precedence.
  const Tensor high = ops::where(ops::gt(input, 1 - *eps), 1 - *eps, input);
  return ops::where(ops::lt(input, *eps), *eps, high);
}

double bessel_factor(SizesView sizes, std::optional<absl::Span<const int64_t>> dims, std::optional<double> correction) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  double count = 1;
  if (!dims || dims->empty()) {
    for (int64_t size : sizes) count *= static_cast<double>(size);
  } else if (ndim > 0) {
    for (int64_t d : *dims) count *= static_cast<double>(sizes[static_cast<size_t>(shape_rules::wrap_dim(d, ndim))]);
  }
  return count / std::max(count - correction.value_or(1), 0.0);
}

Tensor round_decimals(const Tensor& input, int64_t decimals) {
  if (is_reduced_floating(input.dtype()))
    return ops::to_dtype(round_decimals(ops::to_dtype(input, DType::kFloat32), decimals), input.dtype());
  double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  if (decimals > 0) return ops::true_divide(ops::round_half_even(ops::mul(input, scale)), scale);
  return ops::mul(ops::round_half_even(ops::true_divide(input, scale)), scale);
}

// Returns p (p - 1) / 4 log(pi) + the sum of lgamma(input - i / 2) for i < p.
Tensor multivariate_lgamma(const Tensor& input, int64_t p) {
  const double count = static_cast<double>(p);
  Tensor sum = ops::lgamma(input);
  for (int64_t i = 1; i < p; ++i) sum = ops::add(sum, ops::lgamma(ops::sub(input, static_cast<double>(i) / 2)));
  return ops::add(sum, count * (count - 1) / 4 * std::log(3.14159265358979323846));
}

Tensor channel_weight(const Tensor& weight, const Tensor& input) {
  if (weight.numel() == 1 || input.dim() < 2)
    return ops::reshape(weight, weight.numel() == 1 ? Sizes{} : weight.sizes());
  Sizes shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = weight.numel();
  return ops::reshape(weight, shape);
}

// 2^other may exceed the dtype's range although the result does not, so that it is multiplied in parts: 2^(its
// fraction) and four powers with integers.
Tensor load_exponent(const Tensor& input, const Tensor& other) {
  const DType result = to_float(promote(input.dtype(), other.dtype()));
  if (is_complex(result)) return ops::mul(input, ops::exp2(other));
  const bool is_double = result == DType::kFloat64;
  const DType computed = is_double ? result : DType::kFloat32;
  const Tensor exponent = ops::to_dtype(other, computed);
  const double most = is_double ? 4000 : 500;  // of which a fourth is in range
  const Tensor whole = ops::clamp(ops::trunc(exponent), -most, most);
  const Tensor fourth = ops::trunc(ops::true_divide(whole, int64_t{4}));
  const Tensor step = ops::exp2(fourth);
  Tensor value = ops::mul(ops::to_dtype(input, computed), ops::exp2(ops::sub(exponent, ops::trunc(exponent))));
  for (int i = 0; i < 3; ++i) value = ops::mul(value, step);
  value = ops::mul(value, ops::exp2(ops::sub(whole, ops::mul(fourth, int64_t{3}))));
  return ops::to_dtype(value, result);
}

Tensor first_half(const Tensor& input, int64_t dim) { return ops::narrow(input, dim, 0, input.size(dim) / 2); }
Tensor second_half(const Tensor& input, int64_t dim) {
  return ops::narrow(input, dim, input.size(dim) / 2, input.size(dim) / 2);
}

namespace {

// Returns the sizes without the last three, followed by `last`.
Sizes with_last(SizesView sizes, std::initializer_list<int64_t> last) {
  Sizes result(sizes.begin(), sizes.end() - 3);
  result.insert(result.end(), last);
  return result;
}

// Permutes the dimensions from n on by `order`, and copies.
Tensor permuted_from(const Tensor& input, int64_t n, std::initializer_list<int64_t> order) {
  Sizes dims;
  for (int64_t d = 0; d < n; ++d) dims.push_back(d);
  for (int64_t d : order) dims.push_back(n + d);
  return ops::permute(input, dims);
}

}  // namespace

// A result of an operator that returns no view, although `input` may need no copy for it.
static Tensor apart_from(const Tensor& input, const Tensor& result) {
  return result->storage == input->storage ? ops::clone(result) : result;
}

Tensor shuffle_channels(const Tensor& input, int64_t groups) {
  const Sizes& sizes = input.sizes();
  int64_t rest = 1;
  for (size_t d = 2; d < sizes.size(); ++d) rest *= sizes[d];
  const Tensor grouped = ops::reshape(input, Sizes{sizes[0], groups, sizes[1] / groups, rest});
  return apart_from(input, ops::reshape(ops::transpose(grouped, 1, 2), sizes));
}

Tensors at_least_1d(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& t : tensors) result.push_back(t.dim() > 0 ? t : ops::unsqueeze(t, 0));
  return result;
}

Tensors at_least_2d(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& t : at_least_1d(tensors)) result.push_back(t.dim() > 1 ? t : ops::unsqueeze(t, 0));
  return result;
}

Tensor repeat_each(const Tensor& input, int64_t repeats, std::optional<int64_t> dim) {
  if (!dim || input.dim() == 0) return repeat_each(ops::reshape(input, {-1}), repeats, 0);
  int64_t d = shape_rules::wrap_dim(*dim, input.dim());
  Sizes expanded = input.sizes(), shape = input.sizes();
  expanded.insert(expanded.begin() + d + 1, repeats);
  shape[static_cast<size_t>(d)] *= repeats;
  return ops::reshape(ops::expand(ops::unsqueeze(input, d + 1), expanded), shape);
}

Tensor broadcast_except(const Tensor& input, const Tensor& other, int64_t dim) {
  size_t d = static_cast<size_t>(shape_rules::wrap_dim(dim, input.dim()));
  Sizes mine = input.sizes(), theirs = other.sizes();
  mine[d] = theirs[d] = 1;
  Sizes shape = shape_rules::broadcast_sizes(mine, theirs);
  shape[d] = input.sizes()[d];
  return ops::expand(input, shape);
}

}  // namespace composites
}  // namespace tt
