#include "kernels/cpu/iteration/contiguous.h"

#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {

Tensor contiguous(const Tensor& t) { return t ? contiguous_as(t, t.dtype()) : t; }

Tensor contiguous_as(const Tensor& t, DType dtype) {
  if (!t || (t.dtype() == dtype && t.is_contiguous())) return t;
  Tensor out = empty(t.sizes(), dtype, t.device());
  copy(t, out);
  return out;
}

}  // namespace tt::cpu
