// nn::init: initial values of parameters, in place and without recording.
#pragma once

#include <string>

#include "client/api/tensor.h"

namespace teletensor::nn::init {

/// The factor that preserves the variance through a nonlinearity; `param` is the slope of leaky_relu.
double calculate_gain(const std::string& nonlinearity, double param = 0.01);
Tensor uniform_(const Tensor& tensor, double low = 0, double high = 1);
Tensor normal_(const Tensor& tensor, double mean = 0, double std = 1);
Tensor trunc_normal_(const Tensor& tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
Tensor constant_(const Tensor& tensor, const Scalar& value);
Tensor zeros_(const Tensor& tensor);
Tensor ones_(const Tensor& tensor);
Tensor eye_(const Tensor& matrix);
Tensor xavier_uniform_(const Tensor& tensor, double gain = 1);
Tensor xavier_normal_(const Tensor& tensor, double gain = 1);
/// `mode` is "fan_in" or "fan_out"; `a` the slope of leaky_relu.
Tensor kaiming_uniform_(const Tensor& tensor, double a = 0, const std::string& mode = "fan_in",
                        const std::string& nonlinearity = "leaky_relu");
Tensor kaiming_normal_(const Tensor& tensor, double a = 0, const std::string& mode = "fan_in",
                       const std::string& nonlinearity = "leaky_relu");

}  // namespace teletensor::nn::init
