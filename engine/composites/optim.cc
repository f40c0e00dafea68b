#include "engine/composites/optim.h"

#include "engine/dispatch/ops.h"

namespace tt::composites {
namespace {

// The numbers of a contiguous or strided tensor on the CPU.
double option(const Tensor& options, int64_t i) { return options.data_as<double>()[i * options.stride(0)]; }

}  // namespace

Tensors step_sgd(const Tensors& params, const Tensors& grads, const Tensors& momentum_buffers, const Tensor& options,
                 bool nesterov, bool maximize, const Tensor& found_inf) {
  ops::sgd_step(params, grads, momentum_buffers, option(options, 0), option(options, 1), option(options, 2),
                option(options, 3), nesterov, maximize, /*first_step=*/false, found_inf);
  return {};
}

Tensors step_adam(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
                  const Tensors& max_exp_avg_sqs, const Tensor& options, const Tensor& steps, bool decoupled,
                  bool amsgrad, bool maximize, const Tensor& found_inf) {
  ops::adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, /*step=*/1, option(options, 0),
                 option(options, 1), option(options, 2), option(options, 3), option(options, 4), decoupled, amsgrad,
                 maximize, found_inf, steps);
  return {};
}

}  // namespace tt::composites
