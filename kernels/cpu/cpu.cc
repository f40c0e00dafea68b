#include "kernels/cpu/cpu.h"

#include "engine/op_ids.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/overwriting.h"
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

}  // namespace

void register_backend(Dispatcher& dispatcher) {
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  register_overwriting(dispatcher);
}

}  // namespace tt::cpu
