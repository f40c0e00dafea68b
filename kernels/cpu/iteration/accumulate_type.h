// AccumulateBuffer, and operands in the dtype that floating-point kernels compute in.
#pragma once

#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/common/iteration/operands.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {

// Returns `t`, contiguous and in its accumulate_type(). Returns an undefined tensor if `t` is undefined.
inline Tensor as_accumulate_type(const Tensor& t) { return t ? contiguous_as(t, accumulate_type(t.dtype())) : t; }

using AccumulateBuffer = BasicAccumulateBuffer<&copy>;

}  // namespace tt::cpu
