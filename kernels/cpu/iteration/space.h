// Space: the index space of an elementwise loop, and how operands lie over it.
//
// Values, made for one call on its own stack.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/tensor/tensor.h"

namespace tt::cpu {

using Strides = absl::InlinedVector<int64_t, 6>;

// One operand: where its first element is and how far apart, in elements, neighbours along each
// dimension of the space are (0 where it is broadcast).
struct Access {
  char* data = nullptr;
  DType dtype = DType::kFloat32;
  Strides strides;
};

struct Space {
  Strides sizes;
  int64_t numel = 1;

  explicit Space(SizesView of);
  // `t` broadcast over the space. Requires that it broadcasts, and that this was not collapsed.
  Access access(const Tensor& t) const;
  // Drops, reorders and merges dimensions so that the last operand is walked as straight as it
  // goes and the inner dimension is as long as it gets. All operands of the loop must be there.
  void collapse(absl::Span<Access> operands);
  // Whether an operand's elements lie one after the other in this space's order.
  bool is_contiguous(const Access& operand) const;

 private:
  void swap_dims(absl::Span<Access> operands, size_t a, size_t b);
};

}  // namespace tt::cpu
