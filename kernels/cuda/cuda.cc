#include "kernels/cuda/cuda.h"

#include "engine/schema/op_ids.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/pointwise/pointwise.h"

namespace tt::cuda {

void register_kernels(Dispatcher& dispatcher);  // generated: operators that declare a `kernel:`

void register_backend(Dispatcher& dispatcher) {
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  // Operators that only copy elements, of any dtype.
  dispatcher.set(op_id::kAssign, Key::kCUDA, &assign);
  dispatcher.set(op_id::kClone, Key::kCUDA, &clone);
}

}  // namespace tt::cuda
