#include "client/nn/utils.h"

#include <cmath>

#include "client/api/creation.h"
#include "client/api/errors.h"
#include "client/api/session.h"

namespace teletensor::nn::utils {

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  NoGradGuard no_grad;
  std::vector<Tensor> grads, norms;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    grads.push_back(gradient.detach());
    norms.push_back(grads.back().norm(norm_type));
  }
  if (grads.empty()) return tensor(0.0);
  const Tensor total = stack(norms).norm(norm_type);
  if (error_if_nonfinite && !std::isfinite(total.item<double>())) {
    throw RuntimeError("The total norm of gradients from `parameters` is non-finite, so it cannot be clipped");
  }
  const Tensor factor = (max_norm / (total + 1e-6)).clamp_max(1.0);
  for (const Tensor& gradient : grads) gradient.mul_(factor.to(gradient.device(), gradient.dtype()));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGradGuard no_grad;
  for (const Tensor& parameter : parameters) {
    if (parameter.grad().defined()) parameter.grad().detach().clamp_(-clip_value, clip_value);
  }
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> parts;
  parts.reserve(parameters.size());
  for (const Tensor& parameter : parameters) parts.push_back(parameter.reshape({-1}));
  return cat(parts);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  NoGradGuard no_grad;
  int64_t start = 0;
  for (const Tensor& parameter : parameters) {
    parameter.detach().copy_(vector.narrow(0, start, parameter.numel()).view(parameter.sizes()));
    start += parameter.numel();
  }
}

}  // namespace teletensor::nn::utils
