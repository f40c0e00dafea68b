#include "client/nn/init.h"

#include <cmath>
#include <utility>

#include "client/api/creation.h"
#include "client/api/errors.h"
#include "client/api/session.h"

namespace teletensor::nn::init {
namespace {

std::pair<double, double> fans(const Tensor& tensor) {
  if (tensor.dim() < 2) {
    throw ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  }
  double field = 1;
  for (int64_t dim = 2; dim < tensor.dim(); ++dim) field *= static_cast<double>(tensor.size(dim));
  return {static_cast<double>(tensor.size(1)) * field, static_cast<double>(tensor.size(0)) * field};
}

double kaiming_std(const Tensor& tensor, double a, const std::string& mode, const std::string& nonlinearity) {
  if (mode != "fan_in" && mode != "fan_out") {
    throw ValueError("Mode " + mode + " not supported, please use one of ['fan_in', 'fan_out']");
  }
  const auto [in, out] = fans(tensor);
  return calculate_gain(nonlinearity, a) / std::sqrt(mode == "fan_in" ? in : out);
}

}  // namespace

double calculate_gain(const std::string& nonlinearity, double param) {
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + param * param));
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "selu") return 0.75;
  if (nonlinearity == "linear" || nonlinearity == "sigmoid" || nonlinearity.starts_with("conv")) return 1;
  throw ValueError("Unsupported nonlinearity " + nonlinearity);
}

Tensor uniform_(const Tensor& tensor, double low, double high) {
  NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}
Tensor normal_(const Tensor& tensor, double mean, double std) {
  NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}
Tensor trunc_normal_(const Tensor& tensor, double mean, double std, double a, double b) {
  NoGradGuard no_grad;
  const auto probability = [&](double x) { return 0.5 * (1 + std::erf((x - mean) / std / std::sqrt(2.0))); };
  const double low = probability(a), high = probability(b);
  if (high - low < 1e-3) throw ValueError("trunc_normal_: the interval [a, b] has a probability of less than 0.001");
  tensor.uniform_(2 * low - 1, 2 * high - 1);
  return tensor.erfinv_().mul_(std * std::sqrt(2.0)).add_(mean).clamp_(a, b);
}
Tensor constant_(const Tensor& tensor, const Scalar& value) {
  NoGradGuard no_grad;
  return tensor.fill_(value);
}
Tensor zeros_(const Tensor& tensor) { return constant_(tensor, 0); }
Tensor ones_(const Tensor& tensor) { return constant_(tensor, 1); }
Tensor eye_(const Tensor& matrix) {
  if (matrix.dim() != 2) throw ValueError("Only tensors with 2 dimensions are supported");
  NoGradGuard no_grad;
  const SessionGuard session(matrix.session());
  return matrix.copy_(eye(matrix.size(0), matrix.size(1), matrix.options()));
}
Tensor xavier_uniform_(const Tensor& tensor, double gain) {
  const auto [in, out] = fans(tensor);
  const double bound = gain * std::sqrt(6 / (in + out));
  return uniform_(tensor, -bound, bound);
}
Tensor xavier_normal_(const Tensor& tensor, double gain) {
  const auto [in, out] = fans(tensor);
  return normal_(tensor, 0, gain * std::sqrt(2 / (in + out)));
}
Tensor kaiming_uniform_(const Tensor& tensor, double a, const std::string& mode, const std::string& nonlinearity) {
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(tensor, -bound, bound);
}
Tensor kaiming_normal_(const Tensor& tensor, double a, const std::string& mode, const std::string& nonlinearity) {
  return normal_(tensor, 0, kaiming_std(tensor, a, mode, nonlinearity));
}

}  // namespace teletensor::nn::init
