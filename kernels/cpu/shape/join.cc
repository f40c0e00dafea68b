// Operators that lay tensors beside each other: cat, stack, repeat.
#include "kernels/common/shape/join.h"

#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void cat(const Tensors& tensors, int64_t dim, Tensor& out) { join::cat(&copy, tensors, dim, out); }

void stack(const Tensors& tensors, int64_t dim, Tensor& out) { join::stack(&copy, tensors, dim, out); }

void repeat(const Tensor& input, absl::Span<const int64_t> repeats, Tensor& out) {
  join::repeat(&copy, input, repeats, out);
}

}  // namespace tt::cpu
