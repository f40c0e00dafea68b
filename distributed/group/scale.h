// Scaling of a reduction's result or input by a number. Thread-safe.
#pragma once

#include <cstddef>

#include "engine/schema/dtype.h"

namespace tt::distributed {

// Divide or multiply each item in place; 16-bit floats are computed in float and rounded once. Require a floating or
// complex dtype that is not an 8-bit one.
void divide(DType dtype, char* items, size_t count, double divisor);
void multiply(DType dtype, char* items, size_t count, double factor);

}  // namespace tt::distributed
