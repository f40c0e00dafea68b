// Fused optimizer steps: checks of the parameter lists, and the arithmetic for one element (PyTorch's algorithms).
#pragma once

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/math/scalar_math.h"

namespace tt {

struct SgdStep {
  double lr;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool first = false;  // the momentum buffer is uninitialised
};

struct AdamStep {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay = 0;
  bool decoupled = false;  // AdamW: decay is applied to the parameter, not to the gradient
  bool maximize = false;
  double correction1 = 1;  // 1 - beta1^t
  double correction2 = 1;  // 1 - beta2^t

  TT_HOST_DEVICE void set_step(double t) {
    correction1 = 1 - std::pow(beta1, t);
    correction2 = 1 - std::pow(beta2, t);
  }
};

inline AdamStep adam_step_of(int64_t step, double lr, double beta1, double beta2, double eps, double weight_decay,
                             bool decoupled, bool maximize) {
  AdamStep result{lr, beta1, beta2, eps, weight_decay, decoupled, maximize};
  result.set_step(static_cast<double>(step));
  return result;
}

// The state of torch.amp.GradScaler after a step, and the number of earlier steps without overflow.
struct LossScale {
  float scale;
  int32_t growth_tracker;

  // Skipping a step decreases the scale; growth_interval steps in a row without overflow increase it, unless it would
  // become infinite.
  TT_HOST_DEVICE LossScale next(bool found_inf, double growth_factor, double backoff_factor,
                                int64_t growth_interval) const {
    if (found_inf) return {static_cast<float>(static_cast<double>(scale) * backoff_factor), 0};
    if (growth_tracker + 1 != growth_interval) return {scale, growth_tracker + 1};
    const float grown = static_cast<float>(static_cast<double>(scale) * growth_factor);
    return {grown <= std::numeric_limits<float>::max() ? grown : scale, 0};
  }
};

// The coefficients of a step, in the type used for computation.
template <typename T>
struct SgdFactors {
  T lr, decay, sign, keep, momentum, gradient_weight;
  bool first;

  explicit SgdFactors(const SgdStep& step)
      : lr(static_cast<T>(step.lr)),
        decay(static_cast<T>(step.weight_decay)),
        sign(step.maximize ? T(-1) : T(1)),
        keep(static_cast<T>(step.first ? 0 : step.momentum)),
        momentum(static_cast<T>(step.momentum)),
        gradient_weight(static_cast<T>(step.first ? 1 : 1 - step.dampening)),
        first(step.first) {}

  TT_HOST_DEVICE T gradient(T p, T g) const { return sign * g + decay * p; }
  // The new momentum. A new buffer may hold NaN, so the first step does not read it.
  TT_HOST_DEVICE T next_momentum(T m, T d) const { return first ? d : keep * m + gradient_weight * d; }
};

template <typename T>
struct AdamFactors {
  T sign, l2, shrink, one_minus_beta1, beta2, one_minus_beta2, eps, size, unbias;

  TT_HOST_DEVICE explicit AdamFactors(const AdamStep& step)
      : sign(step.maximize ? T(-1) : T(1)),
        l2(static_cast<T>(step.decoupled ? 0 : step.weight_decay)),
        shrink(static_cast<T>(step.decoupled ? 1 - step.lr * step.weight_decay : 1)),
        one_minus_beta1(static_cast<T>(1 - step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        one_minus_beta2(static_cast<T>(1 - step.beta2)),
        eps(static_cast<T>(step.eps)),
        size(static_cast<T>(step.lr / step.correction1)),
        unbias(static_cast<T>(1 / std::sqrt(step.correction2))) {}

  TT_HOST_DEVICE T gradient(T p, T g) const { return sign * g + l2 * p; }
  TT_HOST_DEVICE T average(T a, T d) const { return a + one_minus_beta1 * (d - a); }
  TT_HOST_DEVICE T square(T s, T d) const { return beta2 * s + one_minus_beta2 * d * d; }
  TT_HOST_DEVICE T parameter(T p, T a, T root) const { return shrink * p - size * a / (root * unbias + eps); }
};

// A parameter, its gradient, and its optimizer states; states that the optimizer does not keep are undefined.
using Parameter = std::array<Tensor, 5>;

// The parameters that have a gradient. `lists` holds the gradients, then the states; each list is empty or has one
// tensor per parameter. Throws Error (RuntimeError) if a list or a tensor has the wrong size.
inline std::vector<Parameter> parameters(const Tensors& params, std::initializer_list<const Tensors*> lists) {
  for (const Tensors* list : lists) {
    check(list->empty() || list->size() == params.size(), "expected a list with one tensor for each of ", params.size(),
          " parameters, got ", list->size());
  }
  std::vector<Parameter> all;
  all.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    Parameter parameter{params[i]};
    size_t slot = 1;
    for (const Tensors* list : lists) parameter[slot++] = list->empty() ? Tensor() : (*list)[i];
    check(is_floating(params[i].dtype()), "a parameter must be of a floating type, got ", name(params[i].dtype()));
    for (const Tensor& t : parameter) {
      check(!t || t.numel() == params[i].numel(), "expected a gradient and states of ", params[i].numel(),
            " elements, as many as the parameter has, got ", t ? t.numel() : 0);
    }
    if (parameter[1]) all.push_back(std::move(parameter));
  }
  return all;
}

// Copies the tensors of `computed`, except for the gradient, into `parameter`. Skips tensors that both share.
inline void write_back(void (*copy)(const Tensor& src, const Tensor& dst), const Parameter& computed,
                       const Parameter& parameter) {
  for (size_t i = 0; i < computed.size(); ++i) {
    if (i != 1 && computed[i] && !computed[i].same(parameter[i])) copy(computed[i], parameter[i]);
  }
}

// Throws Error (RuntimeError) unless Adam's states have one tensor per parameter.
inline void check_averages(const Tensors& params, const Tensors& averages, const Tensors& squares,
                           const Tensors& largest, bool amsgrad) {
  check(averages.size() == params.size() && squares.size() == params.size() &&
            (!amsgrad || largest.size() == params.size()),
        "expected running averages for each of ", params.size(), " parameters, got lists of length ", averages.size(),
        ", ", squares.size(), " and ", largest.size());
}

}  // namespace tt
