// The process's default dtype, as torch.get_default_dtype(). Session::call() infers with it and sends it with the
// instruction; CallOptions contains the value at their construction.
#pragma once

#include <atomic>

#include "engine/schema/dtype.h"

namespace tt::client {

inline std::atomic<DType> default_dtype_of_process = kDefaultFloat;

inline DType default_dtype() { return default_dtype_of_process.load(std::memory_order_relaxed); }
// Throws Error (TypeError) unless `t` is a floating dtype of at least 16 bits.
void set_default_dtype(DType t);

}  // namespace tt::client
