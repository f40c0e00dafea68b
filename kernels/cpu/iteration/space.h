// Space: the index space of an elementwise loop, and the strides of operands over it.
//
// Plain values, created on the stack for one call.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/tensor/tensor.h"

namespace tt::cpu {

using Strides = absl::InlinedVector<int64_t, 6>;

// One operand: the address of its first element and, per dimension of the space, the stride in elements (0 if
// broadcast).
struct Access {
  char* data = nullptr;
  DType dtype = DType::kFloat32;
  Strides strides;
};

struct Space {
  Strides sizes;
  int64_t numel = 1;

  explicit Space(SizesView of);
  // Returns `t`, broadcast over the space. Requires that it broadcasts and that collapse() has not been called.
  Access access(const Tensor& t) const;
  // Drops, reorders and merges dimensions: the last operand's strides become descending, and the inner dimension
  // becomes as long as possible. `operands` must be all operands of the loop.
  void collapse(absl::Span<Access> operands);
  // Whether an operand's elements are contiguous in this space's order.
  bool is_contiguous(const Access& operand) const;

 private:
  void swap_dims(absl::Span<Access> operands, size_t a, size_t b);
};

}  // namespace tt::cpu
