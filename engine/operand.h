// Operand: a tensor, a number in a tensor's place, or nothing; what tt::ops functions take.
#pragma once

#include "absl/types/span.h"
#include "engine/dispatcher.h"
#include "engine/rules/operand.h"
#include "engine/tensor.h"

namespace tt {

using Operand = BasicOperand<Tensor>;

namespace ops {

using ListArg = BasicListArg<Tensor>;

// Dispatches `op` and gives its results. `into`, where not empty, is where they land.
Tensors call(uint16_t op, Args args, absl::Span<const Tensor> into = {});

}  // namespace ops
}  // namespace tt
