#include "kernels/cpu/cpu.h"

#include "kernels/cpu/copy.h"
#include "kernels/cpu/pointwise.h"

namespace tt::cpu {

void register_kernels(Dispatcher& dispatcher);  // generated: the operators with a `kernel:`

void register_backend(Dispatcher& dispatcher) {
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  if (const Op* op = find_op("assign")) dispatcher.set(op->id, Key::kCPU, &assign);
}

}  // namespace tt::cpu
