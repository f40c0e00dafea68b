#include "kernels/cuda/cuda.h"

#include "engine/op_ids.h"
#include "kernels/common/overwriting.h"
#include "kernels/common/updating.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/pointwise.h"

namespace tt::cuda {

void register_kernels(Dispatcher& dispatcher);  // generated: the operators with a `kernel:`

namespace {

// What changes elements of its first tensor wherever that lies.
void register_updating(Dispatcher& dispatcher) {
  const auto set = [&](uint16_t op, Kernel kernel) { dispatcher.set(op, Key::kCUDA, kernel); };
  set(op_id::kScatter, &updating<&scatter>);
  set(op_id::kScatterValue, &updating<&scatter_value>);
  set(op_id::kScatterAdd, &updating<&scatter_add>);
  set(op_id::kIndexPut, &updating<&index_put>);
  set(op_id::kIndexAdd, &updating<&index_add>);
  set(op_id::kIndexFill, &updating<&index_fill>);
}

// What writes its result in any layout and dtype, over what it is called on, mostly.
void register_overwriting(Dispatcher& dispatcher) {
  const auto set = [&](uint16_t op, Kernel kernel) { dispatcher.set(op, Key::kCUDA, kernel); };
  set(op_id::kAssign, &assign);
  set(op_id::kClone, &clone);
  set(op_id::kFill, &overwriting<&fill>);
  set(op_id::kUniformLike, &overwriting<&uniform_like>);
  set(op_id::kNormalLike, &overwriting<&normal_like>);
  set(op_id::kBernoulliLike, &overwriting<&bernoulli_like>);
  set(op_id::kExponentialLike, &overwriting<&exponential_like>);
  set(op_id::kRandomLike, &overwriting<&random_like>);
}

}  // namespace

void register_backend(Dispatcher& dispatcher) {
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  register_updating(dispatcher);
  register_overwriting(dispatcher);
}

}  // namespace tt::cuda
