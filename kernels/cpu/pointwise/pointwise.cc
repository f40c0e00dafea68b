#include "kernels/cpu/pointwise/pointwise.h"

#include "kernels/cpu/iteration/chain.h"

namespace tt::cpu {

namespace {

// Runs a single operator as a chain of one step.
void compute(Call& call) {
  const ChainStep step{call.op, call.args, call.inferred.compute};
  run_chain({&step, 1}, call.outputs[0]);
}

// Whether the loop may find a divisor of 0 after it has begun to write.
bool divides_integers(const Call& call) {
  return is_integral(call.inferred.compute) && row_of(call.op->id).divisor >= 0;
}

void pointwise(Call& call) {
  // A result stored in another dtype must first wrap or round to its own dtype.
  const bool converts = call.into && call.outputs[0] && call.outputs[0].dtype() != call.inferred.outputs[0].dtype;
  if (call.into && divides_integers(call)) [[unlikely]]
    return run_with_temporary_outputs(call, &compute);
  converts ? run_with_plain_outputs(call, &compute) : run_with_separate_outputs(call, &compute);
}

}  // namespace

void register_pointwise(Dispatcher& dispatcher) {
  blocks();  // reports an unsupported TELETENSOR_CPU_ISA at start, not at the first call
  for (const Op* op : all_ops()) {
    if (op->is_pointwise) dispatcher.set(op->id, Key::kCPU, &pointwise);
  }
}

}  // namespace tt::cpu
