#include "client/session/default_dtype.h"

#include "engine/schema/default_float.h"
#include "engine/schema/error.h"

namespace tt::client {

void set_default_dtype(DType t) {
  check(ErrorKind::kType, is_default_float(t),
        "only floating-point types of at least 16 bits are supported as the default type");
  default_dtype_of_process.store(t, std::memory_order_relaxed);
}

}  // namespace tt::client
