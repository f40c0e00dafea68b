#include "kernels/cpu/index/out_of_range.h"

#include "engine/schema/error.h"

namespace tt::cpu {

void OutOfRange::rethrow() const {
  if (!found_.load(std::memory_order_relaxed)) return;
  fail(ErrorKind::kIndex, "index ", index_.load(std::memory_order_relaxed), " is out of bounds for dimension ", dim_,
       " with size ", size_);
}

void OutOfRange::rethrow_index_select() const {
  if (!found_.load(std::memory_order_relaxed)) return;
  fail(ErrorKind::kIndex, "index out of range in self, got ", index_.load(std::memory_order_relaxed), " for dimension ",
       dim_, " with size ", size_);
}

}  // namespace tt::cpu
