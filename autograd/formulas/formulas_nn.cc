#include "autograd/formulas/formulas_nn.h"

#include "engine/composites/nn.h"
#include "engine/dispatch/ops.h"
#include "engine/session/context.h"

namespace tt::autograd::formulas {
namespace {

bool recording() { return Context::current().grad_enabled; }

// Returns the dimensions 0 to n - 1 except `begin` to end - 1.
Sizes dims_around(int64_t n, int64_t begin, int64_t end) {
  Sizes dims;
  for (int64_t d = 0; d < n; ++d) {
    if (d < begin || d >= end) dims.push_back(d);
  }
  return dims;
}

// Reshapes `values` to [1, n, 1, ...], so that it broadcasts over the channels of `input`.
Tensor per_channel(const Tensor& values, const Tensor& input) {
  Sizes sizes(input.sizes().size(), 1);
  sizes[1] = input.sizes()[1];
  return ops::reshape(values, sizes);
}

// The intermediate values of a normalization over `dims`: centered = input - mean, scale = 1 / sqrt(mean(centered^2) +
// eps), and value = centered * scale. Without `center`, the mean is not subtracted.
struct Normalized {
  Tensor centered;
  Tensor scale;
  Tensor value;

  Normalized(const Tensor& input, SizesView dims, double eps, bool center) {
    centered = center ? ops::sub(input, ops::mean(input, dims, true)) : input;
    scale = ops::rsqrt(ops::add(ops::mean(ops::square(centered), dims, true), eps));
    value = ops::mul(centered, scale);
  }
  // Returns the gradient of input, given `g`, the gradient of `value`.
  Tensor grad_input(const Tensor& g, SizesView dims, bool center) const {
    Tensor rest = ops::sub(g, ops::mul(value, ops::mean(ops::mul(g, value), dims, true)));
    if (center) rest = ops::sub(rest, ops::mean(g, dims, true));
    return ops::mul(scale, rest);
  }
};

}  // namespace

Tensor product_grad(const Tensor& g, const Tensor& input, Dims dims, bool keepdim) {
  if (dims && !dims->empty()) return prod_dim_grad(g, input, dims->front(), keepdim);
  return prod_grad(keepdim ? ops::reshape(g, Sizes{}) : g, input);
}

Tensor linear_grad_input(const Tensor& g, const Tensor& weight) {
  return weight.dim() == 1 ? ops::mul(ops::unsqueeze(g, -1), weight) : ops::matmul(g, weight);
}

Tensor linear_grad_weight(const Tensor& g, const Tensor& input, SizesView weight) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < input.sizes().size(); ++d) rows *= input.sizes()[d];
  const bool vector = weight.size() == 1;
  const Tensor columns = ops::transpose(ops::reshape(g, Sizes{rows, vector ? 1 : weight[0]}), 0, 1);
  const Tensor grad = ops::matmul(columns, ops::reshape(input, Sizes{rows, weight.back()}));
  return vector ? ops::reshape(grad, weight) : grad;
}

Tensor sum_over_channels(const Tensor& g) { return ops::sum(g, dims_around(g.dim(), 1, 2)); }

Tensor softmax_backward_grad_output(const Tensor& g, const Tensor& grad, const Tensor& output, int64_t dim) {
  const Sizes dims{dim};
  const Tensor through_grad = ops::mul(g, ops::sub(grad, ops::sum(ops::mul(grad, output), dims, true)));
  return ops::sub(through_grad, ops::mul(grad, ops::sum(ops::mul(g, output), dims, true)));
}

Tensor embedding_backward_grad(const Tensor& g, const Tensor& indices, int64_t padding_idx) {
  const Tensor rows = ops::embedding(g, indices, int64_t{-1});
  if (padding_idx < 0) return rows;
  return ops::masked_fill(rows, ops::unsqueeze(ops::eq(indices, padding_idx), -1), 0.0);
}

Tensor max_pool2d_backward_grad(const Tensor& g, const Tensor& indices) {
  const Tensor picked = ops::gather(ops::flatten(g, -2, -1), -1, ops::flatten(indices, -2, -1));
  return ops::reshape(picked, indices.sizes());
}

Tensor cross_entropy_grad(const Tensor& g, const Tensor& input, const Tensor& target, const Tensor& weight,
                          const Tensor& total_weight, const Tensor& largest, const Tensor& log_sum,
                          int64_t ignore_index, std::string_view reduction, double label_smoothing) {
  if (!recording()) {
    return ops::cross_entropy_backward(g, input, target, weight, total_weight, largest, log_sum, ignore_index,
                                       reduction, label_smoothing);
  }
  const int64_t channel = composites::class_dim(input);
  const Tensor nll = label_smoothing == 0 ? g : ops::mul(g, 1 - label_smoothing);
  Tensor picked = ops::nll_loss_backward(nll, target, weight, total_weight, input.sizes(), ignore_index, reduction);
  if (label_smoothing != 0) {
    const Tensor rate = reduction == "mean" ? ops::to_dtype(ops::true_divide(g, total_weight), g.dtype()) : g;
    const Tensor kept = ops::masked_fill(ops::expand(rate, target.sizes()), ops::eq(target, ignore_index), 0.0);
    const double share = label_smoothing / static_cast<double>(input.size(channel));
    const Tensor each = ops::unsqueeze(ops::mul(kept, share), channel);  // of each class
    Sizes per_class(input.sizes().size(), 1);
    per_class[static_cast<size_t>(channel)] = input.size(channel);
    picked = ops::sub(picked, weight ? ops::mul(each, ops::reshape(weight, per_class)) : each);
  }
  return ops::log_softmax_backward(picked, ops::log_softmax(input, channel, std::nullopt), channel);
}

Tensors batch_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, bool training, double eps) {
  if (!recording()) return ops::batch_norm_backward(g, input, weight, mean, rstd, training);
  const Sizes dims = dims_around(input.dim(), 1, 2);
  const Tensor scaled = weight ? ops::mul(g, per_channel(weight, input)) : g;
  Tensor grad_input, value;
  if (training) {
    const Normalized norm(input, dims, eps, true);
    grad_input = norm.grad_input(scaled, dims, true);
    value = norm.value;
  } else {
    const Tensor scale = per_channel(rstd, input);
    grad_input = ops::mul(scaled, scale);
    value = ops::mul(ops::sub(input, per_channel(mean, input)), scale);
  }
  return {grad_input, ops::sum(ops::mul(g, value), dims), ops::sum(g, dims)};
}

Tensors layer_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, SizesView normalized_shape, double eps) {
  if (!recording()) return ops::layer_norm_backward(g, input, weight, mean, rstd, normalized_shape);
  const int64_t leading = input.dim() - static_cast<int64_t>(normalized_shape.size());
  const Sizes dims = dims_around(input.dim(), 0, leading);
  const Normalized norm(input, dims, eps, true);
  const Tensor scaled = weight ? ops::mul(g, weight) : g;
  return {norm.grad_input(scaled, dims, true), sum_to(ops::mul(g, norm.value), normalized_shape),
          sum_to(g, normalized_shape)};
}

Tensors group_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, int64_t num_groups, double eps) {
  if (!recording()) return ops::group_norm_backward(g, input, weight, mean, rstd, num_groups);
  int64_t group = input.sizes()[1] / num_groups;  // entries; the batch may be empty
  for (size_t d = 2; d < input.sizes().size(); ++d) group *= input.sizes()[d];
  const Sizes grouped{input.sizes()[0], num_groups, group}, dims{2};
  const Normalized norm(ops::reshape(input, grouped), dims, eps, true);
  const Tensor scaled = weight ? ops::mul(g, per_channel(weight, input)) : g;
  const Tensor grad_input = norm.grad_input(ops::reshape(scaled, grouped), dims, true);
  const Tensor value = ops::reshape(norm.value, input.sizes());
  return {ops::reshape(grad_input, input.sizes()), sum_over_channels(ops::mul(g, value)), sum_over_channels(g)};
}

Tensors rms_norm_grad(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& rstd,
                      SizesView normalized_shape, double eps) {
  if (!recording()) return ops::rms_norm_backward(g, input, weight, rstd, normalized_shape);
  const int64_t leading = input.dim() - static_cast<int64_t>(normalized_shape.size());
  const Sizes dims = dims_around(input.dim(), 0, leading);
  const Normalized norm(input, dims, eps, false);
  const Tensor scaled = weight ? ops::mul(g, weight) : g;
  return {norm.grad_input(scaled, dims, false), sum_to(ops::mul(g, norm.value), normalized_shape)};
}

Tensors lstm_sequence_grad(const Tensor& output_grad, const Tensor& states_grad, const Tensor& input_gates,
                           const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output,
                           const Tensor& states, const Tensor& gates, bool reverse) {
  const int64_t steps = input_gates.size(0), n = w_hh.size(1);
  // Returns the state before each step: `first`, then the results of the previous steps.
  const auto shifted = [&](const Tensor& first, const Tensor& all) {
    const Tensor start = ops::unsqueeze(first, 0), rest = ops::narrow(all, 0, reverse ? 1 : 0, steps - 1);
    return ops::cat(reverse ? Tensors{rest, start} : Tensors{start, rest}, 0);
  };
  const Tensor h_before = shifted(h, output);
  Tensor input_gates_grad, dh, dc;
  if (!recording()) {
    const Tensors grads = ops::lstm_sequence_backward(output_grad, states_grad, c, w_hh, states, gates, reverse);
    input_gates_grad = grads[0];
    dh = grads[1];
    dc = grads[2];
  } else {
    const Tensor c_before = shifted(c, states), shown = ops::tanh(states);
    const Tensors sums = ops::chunk(ops::add(input_gates, ops::linear(h_before, w_hh, Operand())), 4, -1);
    const Tensor input_gate = ops::sigmoid(sums[0]), forget = ops::sigmoid(sums[1]),
                 output_gate = ops::sigmoid(sums[3]);
    const Tensor candidate = ops::tanh(sums[2]);
    const auto slope = [](const Tensor& share) { return ops::mul(share, ops::rsub(share, int64_t{1})); };
    const auto tanh_slope = [](const Tensor& value) { return ops::rsub(ops::square(value), int64_t{1}); };
    // Factors, for all steps, that convert the gradients of the cell state and of the output to the gradients of the
    // gates.
    const Tensor into_state = ops::mul(output_gate, tanh_slope(shown)),
                 into_output_gate = ops::mul(shown, slope(output_gate));
    const Tensor into_input_gate = ops::mul(candidate, slope(input_gate)),
                 into_forget = ops::mul(c_before, slope(forget));
    const Tensor into_candidate = ops::mul(input_gate, tanh_slope(candidate));
    Tensors by_step(static_cast<size_t>(steps));
    dh = ops::zeros_like(h);
    dc = ops::zeros_like(c);
    for (int64_t i = steps; i-- > 0;) {
      const int64_t t = reverse ? steps - 1 - i : i;
      const auto at = [&](const Tensor& all) { return ops::select(all, 0, t); };
      dh = ops::add(dh, at(output_grad));
      dc = ops::add(ops::add(dc, at(states_grad)), ops::mul(dh, at(into_state)));
      const Tensor step = ops::cat(Tensors{ops::mul(dc, at(into_input_gate)), ops::mul(dc, at(into_forget)),
                                           ops::mul(dc, at(into_candidate)), ops::mul(dh, at(into_output_gate))},
                                   -1);
      by_step[static_cast<size_t>(t)] = step;
      dh = ops::matmul(step, w_hh);
      dc = ops::mul(dc, at(forget));
    }
    input_gates_grad = ops::stack(by_step, 0);
  }
  return {input_gates_grad, dh, dc, linear_grad_weight(input_gates_grad, h_before, Sizes{4 * n, n})};
}

}  // namespace tt::autograd::formulas
