#include "kernels/cpu/cpu.h"

#include "engine/op_ids.h"
#include "kernels/common/overwriting.h"
#include "kernels/common/updating.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/pointwise.h"

namespace tt::cpu {

void register_kernels(Dispatcher& dispatcher);  // generated: the operators with a `kernel:`

namespace {

// What only moves elements, bit by bit where it can; and operators that overwrite what they are called
// on, mostly in place.
void register_overwriting(Dispatcher& dispatcher) {
  const auto set = [&](uint16_t op, Kernel kernel) { dispatcher.set(op, Key::kCPU, kernel); };
  set(op_id::kAssign, &assign);
  set(op_id::kClone, &clone);
  set(op_id::kFill, &overwriting<&fill>);
  set(op_id::kUniformLike, &overwriting<&uniform_like>);
  set(op_id::kNormalLike, &overwriting<&normal_like>);
  set(op_id::kBernoulliLike, &overwriting<&bernoulli_like>);
  set(op_id::kExponentialLike, &overwriting<&exponential_like>);
  set(op_id::kRandomLike, &overwriting<&random_like>);
}

// What changes elements of its first tensor wherever that lies.
void register_updating(Dispatcher& dispatcher) {
  const auto set = [&](uint16_t op, Kernel kernel) { dispatcher.set(op, Key::kCPU, kernel); };
  set(op_id::kScatter, &updating<&scatter>);
  set(op_id::kScatterValue, &updating<&scatter_value>);
  set(op_id::kScatterAdd, &updating<&scatter_add>);
  set(op_id::kIndexPut, &updating<&index_put>);
  set(op_id::kIndexAdd, &updating<&index_add>);
  set(op_id::kIndexFill, &updating<&index_fill>);
}

}  // namespace

void register_backend(Dispatcher& dispatcher) {
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  register_overwriting(dispatcher);
  register_updating(dispatcher);
}

}  // namespace tt::cpu
