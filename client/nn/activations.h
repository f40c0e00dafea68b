// Activations as modules.
#pragma once

#include "client/nn/functional.h"
#include "client/nn/module.h"

namespace teletensor::nn {

/// Declares a module without options that applies a function.
#define TELETENSOR_ACTIVATION(Name, expression)            \
  class Name##Impl : public Module {                       \
   public:                                                 \
    Name##Impl() : Module(#Name) {}                        \
    Tensor forward(const Tensor& x) { return expression; } \
  };                                                       \
  TELETENSOR_MODULE(Name)

TELETENSOR_ACTIVATION(ReLU, x.relu());
TELETENSOR_ACTIVATION(ReLU6, functional::relu6(x));
TELETENSOR_ACTIVATION(SELU, functional::selu(x));
TELETENSOR_ACTIVATION(SiLU, functional::silu(x));
TELETENSOR_ACTIVATION(Mish, functional::mish(x));
TELETENSOR_ACTIVATION(Sigmoid, x.sigmoid());
TELETENSOR_ACTIVATION(Tanh, x.tanh());
TELETENSOR_ACTIVATION(LogSigmoid, functional::logsigmoid(x));
TELETENSOR_ACTIVATION(Softplus, functional::softplus(x));
TELETENSOR_ACTIVATION(Softsign, functional::softsign(x));
TELETENSOR_ACTIVATION(Tanhshrink, functional::tanhshrink(x));
TELETENSOR_ACTIVATION(Hardtanh, functional::hardtanh(x));
TELETENSOR_ACTIVATION(Hardswish, functional::hardswish(x));
TELETENSOR_ACTIVATION(Hardsigmoid, functional::hardsigmoid(x));
#undef TELETENSOR_ACTIVATION

/// Declares a module with one option.
#define TELETENSOR_ACTIVATION_WITH(Name, T, option, value, expression)                          \
  struct Name##Options {                                                                        \
    Name##Options() = default;                                                                  \
    Name##Options(T option) : option##_(option) {} /* NOLINT */                                 \
    TELETENSOR_ARG(T, option) = value;                                                          \
  };                                                                                            \
  class Name##Impl : public Module {                                                            \
   public:                                                                                      \
    using OptionsType = Name##Options;                                                          \
    explicit Name##Impl(const Name##Options& options = {}) : Module(#Name), options(options) {} \
    Tensor forward(const Tensor& x) { return expression; }                                      \
    Name##Options options;                                                                      \
  };                                                                                            \
  TELETENSOR_MODULE(Name)

TELETENSOR_ACTIVATION_WITH(LeakyReLU, double, negative_slope, 0.01,
                           functional::leaky_relu(x, options.negative_slope()));
TELETENSOR_ACTIVATION_WITH(ELU, double, alpha, 1, functional::elu(x, options.alpha()));
TELETENSOR_ACTIVATION_WITH(CELU, double, alpha, 1, functional::celu(x, options.alpha()));
TELETENSOR_ACTIVATION_WITH(GELU, std::string, approximate, "none", functional::gelu(x, options.approximate()));
TELETENSOR_ACTIVATION_WITH(GLU, int64_t, dim, -1, functional::glu(x, options.dim()));
TELETENSOR_ACTIVATION_WITH(Softmax, int64_t, dim, -1, x.softmax(options.dim()));
TELETENSOR_ACTIVATION_WITH(LogSoftmax, int64_t, dim, -1, x.log_softmax(options.dim()));
TELETENSOR_ACTIVATION_WITH(Softmin, int64_t, dim, -1, (-x).softmax(options.dim()));
TELETENSOR_ACTIVATION_WITH(Softshrink, double, lambda, 0.5, softshrink(x, options.lambda()));
TELETENSOR_ACTIVATION_WITH(Hardshrink, double, lambda, 0.5, hardshrink(x, options.lambda()));
#undef TELETENSOR_ACTIVATION_WITH

/// x where it is above the threshold, else the value.
class ThresholdImpl : public Module {
 public:
  ThresholdImpl(double threshold, double value) : Module("Threshold"), threshold_(threshold), value_(value) {}
  Tensor forward(const Tensor& x) { return functional::threshold(x, threshold_, value_); }

 private:
  const double threshold_, value_;
};
TELETENSOR_MODULE(Threshold);

/// softmax over the channels of images.
class Softmax2dImpl : public Module {
 public:
  Softmax2dImpl() : Module("Softmax2d") {}
  Tensor forward(const Tensor& x) {
    if (x.dim() != 3 && x.dim() != 4)
      throw ValueError("Softmax2d: expected input to be 3D or 4D, got " + std::to_string(x.dim()) + "D instead");
    return x.softmax(-3);
  }
};
TELETENSOR_MODULE(Softmax2d);

/// x where it is positive, else weight * x; the weight is learned.
class PReLUImpl : public Module {
 public:
  explicit PReLUImpl(int64_t num_parameters = 1, double init = 0.25)
      : Module("PReLU"), weight(register_parameter("weight", full({num_parameters}, init))) {}
  Tensor forward(const Tensor& input) { return functional::prelu(input, weight); }
  Tensor weight;
};
TELETENSOR_MODULE(PReLU);

}  // namespace teletensor::nn
