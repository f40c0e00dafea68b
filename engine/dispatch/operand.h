// Operand: a tensor, a number in a tensor's place, or nothing; what tt::ops functions take.
#pragma once

#include "absl/types/span.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/schema/operand.h"
#include "engine/tensor/tensor.h"

namespace tt {

using Operand = BasicOperand<Tensor>;

namespace ops {

using ListArg = BasicListArg<Tensor>;

// Dispatches `op` and gives its results. `into`, where not empty, is where they land.
Tensors call(uint16_t op, Args args, absl::Span<const Tensor> into = {});

}  // namespace ops
}  // namespace tt
