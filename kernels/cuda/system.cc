// set_rng_state with a state tensor on a GPU.
#include "engine/dispatch/ops.h"
#include "engine/session/context.h"
#include "kernels/cuda/kernels.h"

namespace tt::cuda {

void set_rng_state(const Tensor& new_state) { ops::set_rng_state(ops::to_device(new_state, Device{})); }

}  // namespace tt::cuda
