// Operand: an argument of tt::ops functions: a tensor, a number passed for a tensor, or nothing.
#pragma once

#include "absl/types/span.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/schema/operand.h"
#include "engine/tensor/tensor.h"

namespace tt {

using Operand = BasicOperand<Tensor>;

namespace ops {

using ListArg = BasicListArg<Tensor>;

// Dispatches `op` and returns its results. Writes them to `into` unless it is empty.
Tensors call(uint16_t op, Args args, absl::Span<const Tensor> into = {});

}  // namespace ops
}  // namespace tt
