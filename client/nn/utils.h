// nn::utils: gradients of many parameters at once.
#pragma once

#include <vector>

#include "client/api/tensor.h"

namespace teletensor::nn::utils {

/// Scales the gradients such that the norm of all of them together is at most `max_norm`, and returns the norm before.
/// Does not wait unless `error_if_nonfinite`, which throws RuntimeError for a norm that is not finite.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);
/// Clamps the elements of the gradients to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace teletensor::nn::utils
