#include "kernels/cpu/pointwise/pointwise.h"

#include "kernels/cpu/iteration/chain.h"

namespace tt::cpu {

namespace {

// A single operator is a chain of one.
void compute(Call& call) {
  const ChainStep step{call.op, call.args, call.inferred.compute};
  run_chain({&step, 1}, call.outputs[0]);
}

void pointwise(Call& call) {
  // Where a result lands in another dtype it must first wrap or round to its own.
  const bool converts = call.into && call.outputs[0] && call.outputs[0].dtype() != call.inferred.outputs[0].dtype;
  converts ? run_with_plain_outputs(call, &compute) : run_with_separate_outputs(call, &compute);
}

}  // namespace

void register_pointwise(Dispatcher& dispatcher) {
  blocks();  // an instruction set that is not there ends the start, not a call
  for (const Op* op : all_ops()) {
    if (op->is_pointwise) dispatcher.set(op->id, Key::kCPU, &pointwise);
  }
  dispatcher.set_chain_kernel(DeviceType::kCPU, &run_chain);
}

}  // namespace tt::cpu
