#include "kernels/cpu/cpu.h"

#include "engine/schema/op_ids.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tt::cpu {

void register_kernels(Dispatcher& dispatcher);  // generated: the operators with a `kernel:`

void register_backend(Dispatcher& dispatcher) {
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  // Copy elements bit by bit, for every kind of tensor that dispatches to this key.
  dispatcher.set(op_id::kAssign, Key::kCPU, &assign);
  dispatcher.set(op_id::kClone, Key::kCPU, &clone);
}

}  // namespace tt::cpu
