// Optimizer steps whose numbers are in a tensor.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// Read `options`, which the shape rule has checked, when they are called. Return no tensors.
Tensors step_sgd(const Tensors& params, const Tensors& grads, const Tensors& momentum_buffers, const Tensor& options,
                 bool nesterov, bool maximize, const Tensor& found_inf);
Tensors step_adam(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
                  const Tensors& max_exp_avg_sqs, const Tensor& options, const Tensor& steps, bool decoupled,
                  bool amsgrad, bool maximize, const Tensor& found_inf);

}  // namespace tt::composites
