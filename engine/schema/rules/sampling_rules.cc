// Rules for sampling by coordinates, scattering with reductions, order statistics and losses over sequences.
#include <algorithm>
#include <cmath>

#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

const TensorMeta& meta(const Arg& a) { return *a.tensor; }

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Sizes shortened(Sizes sizes, int64_t dim, bool keepdim) {
  if (keepdim)
    sizes[static_cast<size_t>(dim)] = 1;
  else
    sizes.erase(sizes.begin() + dim);
  return sizes;
}

}  // namespace

Sizes grid_sample(const Arg& input, const Arg& grid, std::string_view mode, std::string_view padding_mode) {
  const Sizes &x = meta(input).sizes, &g = meta(grid).sizes;
  check(ErrorKind::kValue, one_of(mode, {"bilinear", "nearest", "bicubic"}),
        "expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '", mode, "'");
  check(ErrorKind::kValue, one_of(padding_mode, {"zeros", "border", "reflection"}),
        "expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '", padding_mode, "'");
  check(x.size() == g.size() && (x.size() == 4 || x.size() == 5),
        "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes ", x,
        " and grid with sizes ", g);
  check(mode != "bicubic" || x.size() == 4, "bicubic interpolation only supports 4D input");
  check(x[0] == g[0], "expected grid and input to have same batch size, but got input with sizes ", x,
        " and grid with sizes ", g);
  check(g.back() == static_cast<int64_t>(x.size()) - 2, "expected grid to have size ", x.size() - 2,
        " in last dimension, but got grid with sizes ", g);
  for (size_t d = 2; d < x.size(); ++d) {
    check(x[d] > 0, "expected input to have non-empty spatial dimensions, but input has sizes ", x);
  }
  Sizes result{x[0], x[1]};
  result.insert(result.end(), g.begin() + 1, g.end() - 1);
  return result;
}

namespace {

// Checks channels (N, C, L) or (N, C, L, I) and the indices (N, K, P) of their entries.
void check_positions(const Sizes& channels, const TensorMeta& index) {
  check(index.dtype == DType::kInt64, "Expected dtype int64 for index, got ", name(index.dtype));
  check((channels.size() == 3 || channels.size() == 4) && index.sizes.size() == 3 && channels[0] == index.sizes[0],
        "expected indices with the same batch size, got ", channels, " and indices ", index.sizes);
}
void check_weights(const Sizes& index, const Sizes& weight) {
  check(index == weight, "expected index and weight of equal sizes, got ", index, " and ", weight);
}
void check_values(const Sizes& values, const Sizes& index) {
  check(values[2] == index[2], "expected one value per index, got ", values, " and indices ", index);
}
Sizes with_entries(Sizes channels, SymInt count) {
  channels[2] = count;
  return channels;
}

}  // namespace

Sizes weighted_gather(const Arg& input, const Arg& index, const Arg& weight) {
  check_positions(meta(input).sizes, meta(index));
  check_weights(meta(index).sizes, meta(weight).sizes);
  return with_entries(meta(input).sizes, meta(index).sizes[2]);
}

Sizes weighted_gather_input_grad(const Arg& values, const Arg& index, const Arg& weight, SymInt length) {
  check_positions(meta(values).sizes, meta(index));
  check_weights(meta(index).sizes, meta(weight).sizes);
  check_values(meta(values).sizes, meta(index).sizes);
  check(length >= 0, "expected a length of 0 or more, got ", length);
  return with_entries(meta(values).sizes, length);
}

Sizes weighted_gather_weight_grad(const Arg& values, const Arg& input, const Arg& index) {
  check_positions(meta(values).sizes, meta(index));
  check_values(meta(values).sizes, meta(index).sizes);
  check(meta(input).sizes.size() == meta(values).sizes.size() &&
            with_entries(meta(input).sizes, meta(values).sizes[2]) == meta(values).sizes,
        "expected values with the input's batch size, channels and entry size, got ", meta(values).sizes, " and ",
        meta(input).sizes);
  return meta(index).sizes;
}

Sizes grid_taps(const Arg& grid, SizesView size, std::string_view mode, std::string_view padding_mode) {
  const Sizes& g = meta(grid).sizes;
  const auto dims = static_cast<int64_t>(size.size());
  check((dims == 2 || dims == 3) && g.size() == size.size() + 2 && g.back() == dims, "expected a grid (N, ..., ", dims,
        ") for sizes of 2 or 3 dimensions, got ", g, " and sizes ", size);
  check(one_of(mode, {"nearest", "bilinear", "bicubic"}) && one_of(padding_mode, {"zeros", "border", "reflection"}),
        "unknown mode or padding_mode: ", mode, ", ", padding_mode);
  check(mode != "bicubic" || dims == 2, "bicubic interpolation only supports 4D input");
  check(is_floating(meta(grid).dtype), "expected a grid of floating-point numbers, got ", name(meta(grid).dtype));
  SymInt elements = 1, samples = 1, taps = 1;
  for (SymInt n : size) {
    check(n > 0 && !multiply_overflows(elements, n, &elements) && elements < (int64_t{1} << 58),
          "expected positive sizes of less than 2^58 elements, got ", size);
    taps *= mode == "nearest" ? 1 : mode == "bilinear" ? 2 : 4;
  }
  for (size_t d = 1; d + 1 < g.size(); ++d) samples *= g[d];
  return {g[0], taps, samples};
}

Sizes grid_tap_weights(const Arg& grid, SizesView size, std::string_view mode, std::string_view padding_mode,
                       SizesView order) {
  check(order.size() == size.size(), "expected an order per dimension, got ", order, " for sizes ", size);
  for (SymInt n : order) check(n >= 0 && n < 1024, "expected orders of 0 to 1023, got ", order);
  return grid_taps(grid, size, mode, padding_mode);
}

Sizes affine_grid(const Arg& theta, SizesView size) {
  check(ErrorKind::kNotImplemented, size.size() == 4 || size.size() == 5,
        "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size ", size);
  for (SymInt n : size) check(ErrorKind::kValue, n > 0, "Expected non-zero, positive output size. Got ", size);
  const SymInt space = static_cast<int64_t>(size.size()) - 2;
  const Sizes expected{size[0], space, space + 1};
  check(ErrorKind::kValue, meta(theta).sizes == expected, "Expected a batch of ", space,
        "D affine matrices of shape Nx", space, "x", space + 1, " for size ", size, ". Got ", meta(theta).sizes);
  Sizes result{size[0]};
  result.insert(result.end(), size.begin() + 2, size.end());
  result.push_back(space);
  return result;
}

Sizes scatter_reduce(const Arg& input, int64_t dim, const Arg& index, const Arg& src, std::string_view reduce) {
  check(one_of(reduce, {"sum", "prod", "mean", "amax", "amin"}),
        "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce, ".");
  return scatter(input, dim, index, src);
}

Sizes histogram(const Arg&, SymInt bins, double min, double max) {
  check(bins > 0, "histc(): bins must be > 0, but got ", bins);
  check(std::isfinite(min) && std::isfinite(max), "histc(): range of [", min, ", ", max, "] is not finite");
  check(!(min > max), "histc(): max must be larger than min, got ", min, " and ", max);
  return {bins};
}

Sizes quantile(const Arg& input, const Arg& q, std::optional<int64_t> dim, bool keepdim,
               std::string_view interpolation) {
  check(one_of(interpolation, {"linear", "lower", "higher", "midpoint", "nearest"}),
        "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", interpolation);
  const TensorMeta& x = meta(input);
  check(x.numel() > 0, "quantile() input tensor must be non-empty");
  check(meta(q).dim() <= 1, "quantile() q must be a scalar or 1D tensor");
  Sizes result = meta(q).sizes;
  Sizes rest;
  if (dim)
    rest = x.dim() == 0 ? Sizes{} : shortened(x.sizes, wrap_dim(*dim, x.dim()), keepdim);
  else if (keepdim)
    rest.assign(x.sizes.size(), 1);
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

namespace {

void check_observation_weights(std::string_view what, const Arg& weights, SymInt observations) {
  if (weights.is_none()) return;
  const TensorMeta& w = meta(weights);
  check(w.dim() <= 1, "cov(): expected ", what, " to have one or fewer dimensions but got ", what, " with ", w.dim(),
        " dimensions");
  check(w.numel() == observations, "cov(): expected ", what,
        " to have the same numel as there are observations in the input but got ", w.numel(), " != ", observations);
}

}  // namespace

Sizes cov(const Arg& input, const Arg& fweights, const Arg& aweights) {
  const TensorMeta& x = meta(input);
  check(x.dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ", x.dim(),
        " dimensions");
  const SymInt observations = x.dim() == 2 ? x.sizes[1] : x.numel();
  check_observation_weights("fweights", fweights, observations);
  check_observation_weights("aweights", aweights, observations);
  return x.dim() == 2 && x.sizes[0] != 1 ? Sizes{x.sizes[0], x.sizes[0]} : Sizes{};
}

Sizes corrcoef(const Arg& input) {
  check(meta(input).dim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
        meta(input).dim(), " dimensions");
  return cov(input, Arg(), Arg());
}

Sizes vander(const Arg& x, std::optional<SymInt> columns) {
  check(meta(x).dim() == 1, "x must be a one-dimensional tensor.");
  check(columns.value_or(0) >= 0, "N must be non-negative.");
  return {meta(x).sizes[0], columns.value_or(meta(x).sizes[0])};
}

Sizes put(const Arg& input, const Arg& index, const Arg& source) {
  check(meta(index).dtype == DType::kInt64, "put_(): Expected a long tensor for index, but got ",
        name(meta(index).dtype));
  check(meta(index).numel() == meta(source).numel(),
        "put_(): expected source and index to have the same number of elements, but got source.numel() = ",
        meta(source).numel(), ", index.numel() = ", meta(index).numel());
  return meta(input).sizes;
}

Sizes rot90(const Arg& input, int64_t k, SizesView dims) {
  check(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  const SymInt n = meta(input).dim();
  check(n >= 2, "expected total dims >= 2, but got total dims = ", n);
  const int64_t a = wrap_dim(dims[0], n), b = wrap_dim(dims[1], n);
  check(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  Sizes result = meta(input).sizes;
  if (k % 2 != 0) std::swap(result[static_cast<size_t>(a)], result[static_cast<size_t>(b)]);
  return result;
}

Sizes geometric(const Arg& input, double p) {
  check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return meta(input).sizes;
}

Sizes ctc_loss(const Arg& log_probs, const Arg& targets, SizesView input_lengths, SizesView target_lengths,
               int64_t blank) {
  const Sizes& p = meta(log_probs).sizes;
  check(p.size() == 3, "log_probs must be (T, N, C), got ", p);
  check(blank >= 0 && blank < p[2], "blank must be in label range, got ", blank, " of ", p[2]);
  const auto batch = static_cast<size_t>(p[1]);
  check(input_lengths.size() == batch, "input_lengths must be of size batch_size ", batch, ", got ",
        input_lengths.size());
  check(target_lengths.size() == batch, "target_lengths must be of size batch_size ", batch, ", got ",
        target_lengths.size());
  const TensorMeta& t = meta(targets);
  check(t.dtype == DType::kInt64 || t.dtype == DType::kInt32, "targets must be integers, got ", name(t.dtype));
  SymInt total = 0;
  for (size_t i = 0; i < batch; ++i) {
    check(input_lengths[i] >= 0, "Expected input_lengths to have value at least 0, but got value ", input_lengths[i]);
    check(input_lengths[i] <= p[0], "Expected input_lengths to have value at most ", p[0], ", but got value ",
          input_lengths[i]);
    const SymInt most = t.dim() == 2 ? t.sizes[1] : t.numel();
    check(target_lengths[i] >= 0 && target_lengths[i] <= most, "Expected target_lengths to have value at most ", most,
          ", but got value ", target_lengths[i]);
    total = checked_add(total, target_lengths[i]);
  }
  check(t.dim() == 1 || (t.dim() == 2 && t.sizes[0] == p[1]), "targets must be 1D or (N, S), got ", t.sizes);
  check(t.dim() == 2 || t.numel() == total, "Expected targets of sum(target_lengths) elements, ", total, ", got ",
        t.numel());
  return {p[1]};
}

Sizes ctc_alphas(const Arg& log_probs, SizesView target_lengths) {
  SymInt longest = 0;
  for (SymInt n : target_lengths) longest = larger(longest, n);
  return {meta(log_probs).sizes[1], meta(log_probs).sizes[0], checked_add(checked_mul(2, longest), 1)};
}

Sizes ctc_gradient(const Arg& grad, const Arg& log_probs, const Arg& targets, SizesView input_lengths,
                   SizesView target_lengths, const Arg& loss, const Arg& log_alpha, int64_t blank) {
  const Sizes losses = ctc_loss(log_probs, targets, input_lengths, target_lengths, blank);
  gradient_of(grad, losses);
  gradient_of(loss, losses);
  gradient_of(log_alpha, ctc_alphas(log_probs, target_lengths));
  return meta(log_probs).sizes;
}

}  // namespace tt::shape_rules
