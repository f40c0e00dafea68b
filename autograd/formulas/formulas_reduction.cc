// Gradient formulas of broadcasting and reductions.

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/formulas/formulas.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/rules/shape_rules.h"
#include "engine/session/context.h"

namespace tt::autograd::formulas {
namespace {

using shape_rules::wrap_dim;

// Returns `sizes` with the entries of `dims` replaced by 1.
Sizes with_ones(SizesView sizes, Dims dims) {
  if (!dims || dims->empty()) return Sizes(sizes.size(), 1);
  Sizes kept(sizes.begin(), sizes.end());
  for (int64_t d : *dims) {
    if (!kept.empty()) kept[wrap_dim(d, static_cast<int64_t>(sizes.size()))] = 1;
  }
  return kept;
}

Dims one(const int64_t& dim) { return absl::Span<const int64_t>(&dim, 1); }

// Returns, for each entry along `dim`, the product of all other entries. It is the product of the entries before it
// times the product of the entries after it.
Tensor products_of_others(const Tensor& input, int64_t dim) {
  int64_t n = input.size(dim);
  Sizes edge = input.sizes();
  edge[wrap_dim(dim, input.dim())] = 1;
  Tensor unit = ops::ones(edge, input.dtype(), input.device());
  auto before = [&](const Tensor& t) {
    Tensor shifted = ops::cat(Tensors{unit, ops::narrow(t, dim, 0, n - 1)}, dim);
    return ops::cumprod(shifted, dim);
  };
  const Sizes dims{dim};
  return ops::mul(before(input), ops::flip(before(ops::flip(input, dims)), dims));
}

bool has_zero(const Tensor& input) { return any_true(ops::eq(input, int64_t{0})); }

// Gradient of cumprod without division: the product of the entries before i, times s[i] = g[i] + x[i + 1] s[i + 1].
// Computes s from the last element to the first.
Tensor cumprod_grad_at_zeros(const Tensor& g, const Tensor& input, int64_t dim) {
  Tensors x = ops::unbind(input, dim), from = ops::unbind(g, dim);
  for (size_t i = x.size() - 1; i-- > 0;) from[i] = ops::add(from[i], ops::mul(x[i + 1], from[i + 1]));
  Tensor before = ops::ones_like(x[0]);
  for (size_t i = 0; i < x.size(); ++i) {
    from[i] = ops::mul(before, from[i]);
    before = ops::mul(before, x[i]);
  }
  return ops::stack(from, dim);
}

}  // namespace

bool any_true(const Tensor& flags) {
  if (flags.device().type == DeviceType::kMeta) return false;
  GradMode off(false);
  return ops::to_device(ops::any(flags, Dims(), false), Device{}).data_as<bool>()[0];
}

Tensor reduced_gradient(const Tensor& g, const Tensor& group, std::string_view op, bool sums) {
  check(ErrorKind::kNotImplemented, op == "sum" || (op == "avg" && sums),
        "expected a differentiable reduction, \"sum\" or (with `sums`) \"avg\", got \"", op, "\"");
  if (sums) return ops::group_reduced(g, group, op, sums);
  // All ranks have the same gradient, and each rank computes one summand of the values that depend on it.
  return Context::current().grad_enabled ? ops::group_gradient_reduced(g, group) : g;
}

Tensor sum_to(const Tensor& g, SizesView sizes) {
  if (SizesView(g.sizes()) == sizes) return g;
  // Negative for what was assigned with further outer dimensions, of one element.
  const int64_t extra_dims = g.dim() - static_cast<int64_t>(sizes.size());
  Sizes dims;
  for (int64_t d = 0; d < g.dim(); ++d) {
    if (d < extra_dims || (sizes[static_cast<size_t>(d - extra_dims)] == 1 && g.size(d) != 1)) dims.push_back(d);
  }
  Tensor sum = dims.empty() ? g : ops::sum(g, dims, true);
  return extra_dims == 0 ? sum : ops::reshape(sum, sizes);
}

Tensor expand_reduced(const Tensor& g, SizesView sizes, Dims dims, bool keepdim) {
  Tensor kept = keepdim ? g : ops::reshape(g, with_ones(sizes, dims));
  return ops::expand(kept, sizes);
}
Tensor expand_reduced(const Tensor& g, SizesView sizes, int64_t dim, bool keepdim) {
  return expand_reduced(g, sizes, one(dim), keepdim);
}
Tensor expand_reduced(const Tensor& g, SizesView sizes, std::optional<int64_t> dim, bool keepdim) {
  return dim ? expand_reduced(g, sizes, *dim, keepdim) : expand_reduced(g, sizes, Dims(), keepdim);
}

int64_t reduced_count(SizesView sizes, Dims dims) {
  Sizes kept = with_ones(sizes, dims);
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) count *= kept[d] == sizes[d] ? 1 : sizes[d];
  return count;
}

Tensor var_grad(const Tensor& g, const Tensor& input, Dims dims, int64_t correction, bool keepdim) {
  auto count = static_cast<double>(std::max<int64_t>(reduced_count(input.sizes(), dims) - correction, 0));
  Tensor distance = ops::sub(input, ops::mean(input, dims, true));
  return ops::mul(expand_reduced(g, input.sizes(), dims, keepdim), ops::mul(distance, 2 / count));
}

Tensor std_grad(const Tensor& g, const Tensor& input, const Tensor& result, Dims dims, int64_t correction,
                bool keepdim) {
  Tensor half = ops::true_divide(g, ops::mul(result, int64_t{2}));
  return var_grad(ops::masked_fill(half, ops::eq(result, int64_t{0}), 0.0), input, dims, correction, keepdim);
}

Tensor prod_grad(const Tensor& g, const Tensor& input) {
  if (input.numel() == 0) return ops::zeros_like(input);
  if (input.numel() == 1) return ops::reshape(g, input.sizes());
  const Sizes flat{input.numel()};
  return ops::mul(ops::reshape(products_of_others(ops::reshape(input, flat), 0), input.sizes()), g);
}

Tensor prod_dim_grad(const Tensor& g, const Tensor& input, int64_t dim, bool keepdim) {
  if (input.dim() == 0) return g;
  if (input.numel() == 0) return ops::zeros_like(input);
  return ops::mul(expand_reduced(g, input.sizes(), dim, keepdim), products_of_others(input, dim));
}

Tensor extremum_grad(const Tensor& g, const Tensor& input, const Tensor& result, Dims dims, bool keepdim) {
  Tensor is_extremum = ops::eq(input, expand_reduced(result, input.sizes(), dims, keepdim));
  is_extremum = ops::logical_or(is_extremum, ops::isnan(input));
  Tensor share = ops::true_divide(expand_reduced(g, input.sizes(), dims, keepdim), ops::sum(is_extremum, dims, true));
  return ops::where(is_extremum, share, 0.0);
}

Tensor selected_grad(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim, bool keepdim) {
  if (sizes.empty()) return g;
  Tensor values = keepdim ? g : ops::unsqueeze(g, dim);
  Tensor positions = keepdim ? indices : ops::unsqueeze(indices, dim);
  return gather_grad(values, sizes, dim, positions);
}

Tensor norm_grad(const Tensor& g, const Tensor& input, const Tensor& result, double p, Dims dims, bool keepdim) {
  if (p == 0) return ops::zeros_like(input);
  const auto expanded = [&](const Tensor& t) { return expand_reduced(t, input.sizes(), dims, keepdim); };
  if (std::isinf(p)) return ops::mul(extremum_grad(g, ops::abs(input), result, dims, keepdim), ops::sgn(input));
  if (p == 1) return ops::mul(expanded(g), ops::sgn(input));
  // A norm of 0 is replaced before it is divided by, not after: otherwise the second derivative is 0 times infinity.
  const Tensor is_zero = ops::eq(result, int64_t{0});
  if (p == 2) {
    const double infinity = std::numeric_limits<double>::infinity();
    return ops::mul(expanded(g), ops::true_divide(input, expanded(ops::masked_fill(result, is_zero, infinity))));
  }
  const Tensor norm = ops::masked_fill(result, is_zero, 1.0);
  const Tensor scale = ops::masked_fill(ops::true_divide(g, ops::pow(norm, p - 1)), is_zero, 0.0);
  if (p >= 3) return ops::mul(ops::mul(input, ops::pow(ops::abs(input), p - 2)), expanded(scale));
  // Below 3, powers of 0 or their derivatives are infinite. Both derivatives are 0 there.
  const Tensor magnitude = ops::masked_fill(ops::abs(input), ops::eq(input, int64_t{0}), 1.0);
  return ops::mul(ops::mul(ops::sgn(input), ops::pow(magnitude, p - 1)), expanded(scale));
}

Tensor cumsum_grad(const Tensor& g, int64_t dim) {
  if (g.dim() == 0) return g;
  const Sizes dims{dim};
  return ops::flip(ops::cumsum(ops::flip(g, dims), dim), dims);
}

// Element i of the input is a factor of the results i, i + 1, ... Its gradient is the sum of g * result over these
// results, divided by the element.
Tensor cumprod_grad(const Tensor& g, const Tensor& input, const Tensor& result, int64_t dim) {
  if (g.dim() == 0) return g;
  if (has_zero(input)) return cumprod_grad_at_zeros(g, input, dim);
  return ops::true_divide(cumsum_grad(ops::mul(g, result), dim), input);
}

}  // namespace tt::autograd::formulas
