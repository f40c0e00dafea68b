#include "engine/composites/nn.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/dispatch/ops.h"
#include "engine/schema/default_float.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::composites {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Reshapes to [1, n, 1, ...], with n at `channel` of `ndim` dimensions.
Tensor along_channel(const Tensor& values, int64_t ndim, int64_t channel) {
  Sizes sizes(static_cast<size_t>(ndim), 1);
  sizes[static_cast<size_t>(channel)] = values.numel();
  return ops::reshape(values, sizes);
}

// All dimensions but one.
Sizes all_but(const Tensor& input, int64_t dim) {
  Sizes rest;
  const int64_t kept = shape_rules::wrap_dim(dim, input.dim());
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != kept) rest.push_back(d);
  }
  return rest;
}

bool is_one(const Scalar& number) { return number.to_complex() == 1.0; }

}  // namespace

Tensor add_product(const Tensor& input, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  // An integral product is scaled by integers: the fraction of a floating-point factor is dropped. A bool is 0 or 1.
  auto factor = [&](const Scalar& s) {
    return is_integral(product.dtype()) || s.category() == Category::kBool ? Scalar(s.to_int()) : s;
  };
  Tensor scaled = is_one(alpha) ? product : ops::mul(product, factor(alpha));
  if (!beta.to_bool()) return scaled;
  return ops::add(scaled, input, factor(beta));
}

Tensor add_outer(const Tensor& input, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  if (input.dtype() == DType::kBool && product.dtype() == DType::kBool) {  // `or` and `and`
    return ops::bitwise_or(ops::bitwise_and(input, beta.to_bool()), ops::bitwise_and(product, alpha.to_bool()));
  }
  const Tensor scaled = is_one(alpha) ? product : ops::mul(product, alpha);
  if (beta.to_complex() == 0.0) return ops::expand(scaled, product.sizes());
  return ops::add(scaled, is_one(beta) ? input : ops::mul(input, beta));
}

Tensor kronecker(const Tensor& input, const Tensor& other) {
  constexpr int64_t kLongRow = 128;  // elements; the product of such rows is limited by memory bandwidth only
  const size_t n = static_cast<size_t>(std::max(input.dim(), other.dim()));
  const Sizes a = prepend_ones(input.sizes(), static_cast<int64_t>(n));
  const Sizes b = prepend_ones(other.sizes(), static_cast<int64_t>(n));
  Sizes sizes, left_sizes, right_sizes;
  for (size_t d = 0; d < n; ++d) {
    sizes.push_back(a[d] * b[d]);
    left_sizes.insert(left_sizes.end(), {a[d], 1});
    right_sizes.insert(right_sizes.end(), {1, b[d]});
  }
  Tensor left = ops::reshape(input, left_sizes), right = ops::reshape(other, right_sizes);
  if (n > 1 && b[n - 1] < kLongRow && product(sizes) >= kLongRow * kLongRow) {  // expand short rows
    left_sizes.back() = b[n - 1];
    right_sizes[2 * n - 2] = a[n - 1];
    left = ops::flatten(ops::expand(left, left_sizes), -2, -1);
    right = ops::flatten(ops::expand(right, right_sizes), -2, -1);
  }
  return ops::reshape(ops::mul(left, right), sizes);
}

Tensor padded_edges(const Tensor& input, SizesView pad, std::string_view mode) {
  if (input.device().type == DeviceType::kCPU) return ops::pad_edges_forward(input, pad, mode);  // the CPU's kernel
  Tensor result = input;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t dim = input.dim() - 1 - static_cast<int64_t>(i), size = input.size(dim);
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    if (before == 0 && after == 0) continue;
    Tensor at = ops::arange_from(-before, size + after, int64_t{1}, DType::kInt64, input.device());
    if (mode == "reflect") {
      at = ops::rsub(ops::abs(ops::sub(ops::abs(at), size - 1)), size - 1);
    } else if (mode == "replicate") {
      at = ops::clamp_between(at, int64_t{0}, size - 1);
    } else {
      const int64_t first = std::max<int64_t>(-before, 0), kept = size - first + std::min<int64_t>(after, 0);
      at = ops::add(ops::remainder(ops::sub(at, first), std::max<int64_t>(kept, 1)), first);
    }
    result = ops::index_select(result, dim, at);
  }
  return result.same(input) ? ops::clone(input) : result;
}

Tensor bilinear_form(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  const int64_t out = weight.size(0), n1 = weight.size(1), n2 = weight.size(2);
  const Tensor matrix = ops::reshape(ops::permute(weight, Sizes{1, 0, 2}), Sizes{n1, out * n2});
  Sizes sizes = input1.sizes();
  sizes.back() = out;
  sizes.push_back(n2);
  const Tensor products = ops::reshape(ops::matmul(input1, matrix), sizes);
  const Tensor result = ops::sum(ops::mul(products, ops::unsqueeze(input2, -2)), Sizes{-1});
  return bias ? ops::add(result, bias) : result;
}

Tensor inner_product(const Tensor& input, const Tensor& other) {
  if (input.dim() == 0 || other.dim() == 0) return ops::mul(input, other);
  const int64_t n = input.sizes().back();
  const auto rows = [n](const Tensor& x) {
    int64_t count = 1;
    for (size_t d = 0; d + 1 < x.sizes().size(); ++d) count *= x.sizes()[d];
    return ops::reshape(x, Sizes{count, n});
  };
  const Tensor left = rows(input), right = rows(other);
  Sizes sizes(input.sizes().begin(), input.sizes().end() - 1);
  sizes.insert(sizes.end(), other.sizes().begin(), other.sizes().end() - 1);
  return ops::reshape(ops::matmul(left, ops::transpose(right, 0, 1)), sizes);
}

namespace {

// Computes a complex product from three real products: (a + bi)(c + di) = ac - bd + ((a + b)(c + d) - ac - bd) i.
template <typename Product>
Tensor complex_product(const Tensor& x, const Tensor& y, Product product) {
  const Tensor a = ops::real(x), b = ops::imag(x), c = ops::real(y), d = ops::imag(y);
  const Tensor ac = product(a, c), bd = product(b, d), all = product(ops::add(a, b), ops::add(c, d));
  return ops::complex(ops::sub(ac, bd), ops::sub(ops::sub(all, ac), bd));
}

Tensor add_bias(const Tensor& result, const Tensor& bias) {
  return bias ? ops::add(result, along_channel(bias, result.dim(), 1)) : result;
}

}  // namespace

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, SizesView stride, SizesView padding,
                SizesView dilation, int64_t groups) {
  if (input.dim() != weight.dim()) {
    return ops::squeeze_dim(convolve(ops::unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups),
                            Sizes{0});
  }
  if (!is_complex(input.dtype())) return ops::convolution(input, weight, bias, stride, padding, dilation, groups);
  const auto slide = [&](const Tensor& x, const Tensor& w) {
    return ops::convolution(x, w, Tensor(), stride, padding, dilation, groups);
  };
  return add_bias(complex_product(input, weight, slide), bias);
}

namespace {
// A single entry applies to all dimensions.
int64_t entry(SizesView list, int64_t d) { return list[list.size() == 1 ? 0 : static_cast<size_t>(d)]; }

// Whether output_padding is smaller than stride in every dimension. Otherwise no input of a convolution has this size.
bool is_convolution_input_size(SizesView stride, SizesView output_padding, int64_t space) {
  for (int64_t d = 0; d < space; ++d) {
    if (entry(output_padding, d) >= entry(stride, d)) return false;
  }
  return true;
}
}  // namespace

Tensor convolve_transposed(const Tensor& input, const Tensor& weight, const Tensor& bias, SizesView stride,
                           SizesView padding, SizesView output_padding, int64_t groups, SizesView dilation) {
  if (input.dim() != weight.dim()) {
    const Tensor batch = ops::unsqueeze(input, 0);
    return ops::squeeze_dim(convolve_transposed(batch, weight, bias, stride, padding, output_padding, groups, dilation),
                            Sizes{0});
  }
  if (is_complex(input.dtype())) {
    const auto slide = [&](const Tensor& x, const Tensor& w) {
      return convolve_transposed(x, w, Tensor(), stride, padding, output_padding, groups, dilation);
    };
    return add_bias(complex_product(input, weight, slide), bias);
  }
  const int64_t space = weight.dim() - 2;
  const Sizes size = shape_rules::conv_transpose(Arg(input.get()), Arg(weight.get()), Arg(), stride, padding,
                                                 output_padding, groups, dilation, space);
  Tensor result;
  if (is_convolution_input_size(stride, output_padding, space)) {
    result = ops::convolution_input(input, weight, size, stride, padding, dilation, groups);
  } else {  // compute the whole output without padding, then crop it or pad it with zeros
    const Sizes none(static_cast<size_t>(space), 0);
    const Sizes all = shape_rules::conv_transpose(Arg(input.get()), Arg(weight.get()), Arg(), stride, none, none,
                                                  groups, dilation, space);
    Sizes borders;
    for (int64_t d = space - 1; d >= 0; --d) {
      borders.push_back(-entry(padding, d));
      borders.push_back(entry(output_padding, d) - entry(padding, d));
    }
    result = ops::pad(ops::convolution_input(input, weight, all, stride, none, dilation, groups), borders, 0.0);
  }
  return add_bias(result, bias);
}

Tensor cosine(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  check(eps >= 0, "eps must be non-negative, got: ", eps);
  const Sizes dims{dim}, sizes = shape_rules::broadcast_sizes(x1.sizes(), x2.sizes());
  const DType dtype = promote(x1.dtype(), x2.dtype());
  const Tensor product = ops::sum(ops::mul(x1, x2), dims);
  auto length = [&](const Tensor& x) {
    const Tensor same = x.dtype() == dtype ? x : ops::to_dtype(x, dtype);
    const Tensor wide = x.sizes() == sizes ? same : ops::expand(same, sizes);
    return ops::clamp_min(ops::vector_norm(wide, 2.0, dims), eps);
  };
  return ops::true_divide(product, ops::mul(length(x1), length(x2)));
}

// |a - b|^2 = |a|^2 - 2 a b + |b|^2, for all pairs in one matrix product. Imprecise if a is near b.
static Tensor euclidean_by_product(const Tensor& x1, const Tensor& x2) {
  const Sizes last{-1};
  const Tensor n1 = ops::sum(ops::square(x1), last, true), n2 = ops::sum(ops::square(x2), last, true);
  const Tensor left = ops::cat({ops::mul(x1, int64_t{-2}), n1, ops::full_like(n1, int64_t{1})}, -1);
  const Tensor right = ops::cat({x2, ops::full_like(n2, int64_t{1}), n2}, -1);
  const Tensor squares = ops::matmul(left, ops::transpose(right, -2, -1));
  const Tensor same =
      ops::le(squares, int64_t{0});  // where the points are equal, the gradient is zero instead of infinite
  return ops::masked_fill(ops::sqrt(ops::masked_fill(squares, same, 1.0)), same, 0.0);
}

Tensor pairwise_distances(const Tensor& x1, const Tensor& x2, double p, std::optional<std::string_view> compute_mode) {
  constexpr int64_t kMatmulThreshold = 25;  // PyTorch's threshold
  const std::string_view mode = compute_mode.value_or("use_mm_for_euclid_dist_if_necessary");
  const bool always = mode == "use_mm_for_euclid_dist", never = mode == "donot_use_mm_for_euclid_dist";
  check(ErrorKind::kValue, always || never || mode == "use_mm_for_euclid_dist_if_necessary",
        "possible modes: 1, 2, 3, but was: ", mode);
  const bool many = x1.size(-2) > kMatmulThreshold || x2.size(-2) > kMatmulThreshold;
  if (p == 2 && !never && (always || many)) return euclidean_by_product(x1, x2);
  const Tensor differences = ops::sub(ops::unsqueeze(x1, -2), ops::unsqueeze(x2, -3));
  return std::isinf(p) ? ops::chebyshev_norm(differences, Sizes{-1}) : ops::vector_norm(differences, p, Sizes{-1});
}

// Of the dtype in which a norm of `dtype` is computed.
double epsilon(DType dtype) { return to_real(dtype) == DType::kFloat64 ? 0x1p-52 : 0x1p-23; }

// As in PyTorch, averages the squares of complex numbers, not of their absolute values.
Tensor rms_normalize(const Tensor& input, SizesView normalized_shape, const Tensor& weight, double eps) {
  if (!is_complex(input.dtype())) {
    // The kernel reads a weight of the input's dtype, or of float32.
    const bool is_read = !weight || weight.dtype() == input.dtype() ||
                         (weight.dtype() == DType::kFloat32 && item_size(input.dtype()) == 2);
    const DType wanted = item_size(input.dtype()) == 2 ? DType::kFloat32 : input.dtype();
    return ops::rms_norm_forward(input, normalized_shape, is_read ? weight : ops::to_dtype(weight, wanted), eps)[0];
  }
  Sizes dims;
  for (size_t d = 1; d <= normalized_shape.size(); ++d) dims.push_back(-static_cast<int64_t>(d));
  const Tensor root = ops::rsqrt(ops::add(ops::mean(ops::square(input), dims, true), eps));
  return stored_as(apply_weight(ops::mul(input, root), weight), input);
}

int64_t class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }

Tensor distance(const Tensor& input, const Tensor& target) {
  const bool is_real = !is_complex(input.dtype()) && !is_complex(target.dtype());
  return is_real ? ops::absolute_difference(input, target) : ops::abs(ops::sub(input, target));
}

Tensor huber(const Tensor& input, const Tensor& target, double delta) {
  // No difference is as large as an infinite delta, by which smooth_difference would divide and multiply.
  const bool is_double = input.dtype() == DType::kFloat64 || target.dtype() == DType::kFloat64;
  const double largest = is_double ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  if (delta > largest) return ops::mul(ops::squared_difference(input, target), 0.5);
  return ops::smooth_difference(input, target, delta, delta);
}

Tensor stored_as(const Tensor& losses, const Tensor& like) {
  return losses.dtype() == like.dtype() ? losses : ops::to_dtype(losses, like.dtype());
}

Tensor renormalize(const Tensor& input, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  const DType real = to_real(input.dtype());
  const Tensor norms = ops::vector_norm(input, p.to_double(), all_but(input, dim), true,
                                        is_reduced_floating(real) ? DType::kFloat32 : real);
  // Slices that keep their norm divide finite numbers, so that the derivative that is not used is no NaN.
  const Tensor exceeds = ops::gt(norms, maxnorm);
  const double most = std::min(maxnorm.to_double(), std::numeric_limits<double>::max());
  const Tensor reduced = ops::true_divide(most, ops::add(ops::where(exceeds, norms, 1.0), 1e-7));
  const Tensor factor = ops::where(exceeds, reduced, 1.0);
  return ops::mul(input, ops::to_dtype(factor, real));
}

Tensor slice_norms(const Tensor& v, int64_t order, int64_t dim) {
  const auto ord = static_cast<double>(order);
  if (dim == -1) return ops::vector_norm(v, ord);
  const Sizes rest = all_but(v, dim);
  return rest.empty() ? ops::abs(v) : ops::vector_norm(v, ord, rest, true);  // an empty list means all dimensions
}

Tensor fake_quantize_channels(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                              int64_t quant_min, int64_t quant_max) {
  const int64_t channel = shape_rules::wrap_dim(axis, input.dim());
  const Tensor scales = along_channel(ops::detach(scale), input.dim(), channel);
  const Tensor points = along_channel(ops::detach(zero_point), input.dim(), channel);
  if (!is_floating(zero_point.dtype())) return ops::fake_quantize_affine(input, scales, points, quant_min, quant_max);
  const Tensor x = ops::detach(input);
  const Tensor rounded = ops::round_half_even(ops::add(ops::mul(x, ops::reciprocal(scales)), points));
  const Tensor inside = ops::logical_and(ops::ge(rounded, quant_min), ops::le(rounded, quant_max));
  const Tensor limited = ops::clamp_between(rounded, quant_min, quant_max);
  const Tensor values = ops::to_dtype(ops::mul(ops::sub(limited, points), scales), input.dtype());
  return ops::where(inside, ops::add(values, ops::sub(input, x)), values);  // the gradient of the identity inside
}

Tensor reduce_loss(const Tensor& losses, std::string_view reduction) {
  if (reduction == "none") return losses;
  return reduction == "sum" ? ops::sum(losses) : ops::mean(losses);
}

Tensor apply_weight(const Tensor& losses, const Tensor& weight) { return weight ? ops::mul(losses, weight) : losses; }

// softplus(-x) is -log(sigmoid(x)).
Tensor bce_with_logits(const Tensor& input, const Tensor& target, const Tensor& pos_weight) {
  const Tensor negative = ops::logsigmoid(input);
  const Tensor rest = ops::mul(ops::rsub(target, int64_t{1}), input);
  if (!pos_weight) return ops::sub(rest, negative);
  const Tensor scale = ops::add(ops::mul(ops::sub(pos_weight, int64_t{1}), target), int64_t{1});
  return ops::sub(rest, ops::mul(scale, negative));
}

Tensor kl_divergence(const Tensor& input, const Tensor& target, std::string_view reduction, bool log_target) {
  const Tensor losses = log_target ? ops::mul(ops::exp(target), ops::sub(target, input))
                                   : ops::sub(ops::xlogy(target, target), ops::mul(target, input));
  if (reduction == "batchmean") return ops::true_divide(ops::sum(losses), input.sizes()[0]);
  return reduce_loss(losses, reduction);
}

Tensor cosine_embedding(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                        std::string_view reduction) {
  const auto floating = [](const Tensor& t) { return is_integral(t.dtype()) ? ops::to_dtype(t, default_float()) : t; };
  // PyTorch's own formula: in contrast to cosine_similarity, it adds to the squares and bounds nothing.
  const auto product = [](const Tensor& a, const Tensor& b) { return ops::sum(ops::mul(a, b), Sizes{-1}, false); };
  const auto square = [&](const Tensor& t) { return ops::add(product(t, t), 1e-12); };
  const Tensor x = floating(input1), y = floating(input2);
  const Tensor cosine = ops::true_divide(product(x, y), ops::sqrt(ops::mul(square(x), square(y))));
  const Tensor apart = ops::clamp_min(ops::sub(cosine, margin), int64_t{0});
  const Tensor unlike = ops::where(ops::eq(target, int64_t{-1}), apart, 0.0);
  return reduce_loss(ops::where(ops::eq(target, int64_t{1}), ops::rsub(cosine, int64_t{1}), unlike), reduction);
}

Tensor poisson_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps) {
  const Tensor losses = log_input ? ops::poisson_nll(input, target) : ops::poisson_nll_of_rate(input, target, eps);
  return full ? ops::add(losses, ops::stirling(target)) : losses;
}

Tensor gaussian_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full, double eps) {
  const Tensor losses = ops::gaussian_nll(input, target, ops::at_least(var, eps));
  return full ? ops::add(losses, 0.5 * std::log(2 * kPi)) : losses;
}

Tensor multi_margin(const Tensor& input, const Tensor& target, int64_t p, double margin, const Tensor& weight) {
  const Tensor rows = input.dim() == 2 ? input : ops::reshape(input, Sizes{1, -1});
  const Tensor classes = ops::reshape(target, Sizes{-1, 1});
  const Tensor differences = ops::shifted_difference(rows, ops::gather(rows, 1, classes), margin);
  Tensor gaps = ops::clamp_min(differences, int64_t{0});
  if (p == 2) gaps = ops::square(gaps);
  if (weight) gaps = ops::mul(gaps, ops::unsqueeze(ops::index_select(weight, 0, ops::reshape(target, Sizes{-1})), 1));
  const Tensor others = ops::scatter_value(gaps, 1, classes, 0.0);
  return ops::reshape(ops::true_divide(ops::sum(others, Sizes{1}), rows.size(1)), target.sizes());
}

Tensor multilabel_margin(const Tensor& input, const Tensor& target) {
  const bool is_batch = input.dim() == 2;
  const Tensor rows = is_batch ? input : ops::reshape(input, Sizes{1, -1});
  const Tensor labels = is_batch ? target : ops::reshape(target, Sizes{1, -1});
  // The classes before the first negative one.
  const Tensor precede = ops::cumprod(ops::to_dtype(ops::ge(labels, int64_t{0}), DType::kInt64), 1);
  // -1 stands for no class; other negative numbers are refused as indices.
  const Tensor indices = ops::masked_fill(labels, ops::eq(labels, int64_t{-1}), int64_t{0});
  // Adds counts instead of writing flags, because a missing target has index 0, which may also be a target.
  const Tensor counts = ops::scatter_add(ops::zeros(rows.sizes(), DType::kInt64, rows.device()), 1, indices, precede);
  const Tensor counted = ops::logical_and(ops::unsqueeze(precede, 2), ops::unsqueeze(ops::eq(counts, int64_t{0}), 1));
  const Tensor targets = ops::unsqueeze(ops::gather(rows, 1, indices), 2);
  const Tensor gaps = ops::clamp_min(ops::shifted_difference(ops::unsqueeze(rows, 1), targets, 1.0), int64_t{0});
  const Tensor sums = ops::sum(ops::masked_fill(gaps, ops::logical_not(counted), 0.0), Sizes{1, 2});
  const Tensor losses = ops::true_divide(sums, rows.size(1));
  return is_batch ? losses : ops::reshape(losses, Sizes{});
}

Tensor triplet_margin(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p,
                      double eps, bool swap) {
  const Tensor near = ops::pairwise_distance(anchor, positive, p, eps);
  Tensor far = ops::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = ops::minimum(far, ops::pairwise_distance(positive, negative, p, eps));
  return ops::clamp_min(ops::add(ops::sub(near, far), margin), int64_t{0});
}

}  // namespace tt::composites
