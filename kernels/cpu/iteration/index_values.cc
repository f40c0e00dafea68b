#include "kernels/cpu/iteration/index_values.h"

#include "engine/schema/error.h"
#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {

Tensor index_values(const Tensor& index) {
  if (index.dtype() == DType::kInt64) return index;
  check_index_dtype(index);
  Tensor out = empty(index.sizes(), DType::kInt64, index.device());
  copy(index, out);
  return out;
}

void OutOfRange::rethrow() const {
  if (!found_.load(std::memory_order_relaxed)) return;
  fail(ErrorKind::kIndex, "index ", index_.load(std::memory_order_relaxed), " is out of bounds for dimension ", dim_,
       " with size ", size_);
}

void OutOfRange::rethrow_in_self() const {
  if (!found_.load(std::memory_order_relaxed)) return;
  fail(ErrorKind::kIndex, "index out of range in self, got ", index_.load(std::memory_order_relaxed), " for dimension ",
       dim_, " with size ", size_);
}

}  // namespace tt::cpu
