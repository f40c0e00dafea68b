// Elementwise reductions over contiguous memory. Thread-safe.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "distributed/group/collective.h"

namespace tt::distributed {

// Throws Error (TypeError, ValueError) if `op` is not defined for the dtype: bitwise operations for floating and
// complex numbers, min and max for complex ones, anything for 8-bit floating numbers.
void check_reduction(ReduceOp op, DType dtype);
// output[i] = inputs[0][i] op inputs[1][i] op ..., in this order. 16-bit floating types are accumulated in float and
// rounded once. `output` may equal one of the inputs. Requires at least one input.
void reduce(ReduceOp op, DType dtype, char* output, absl::Span<const char* const> inputs, size_t count);

}  // namespace tt::distributed
