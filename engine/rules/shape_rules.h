// The vocabulary of `shape:` in the operators' declarations. Closed, as dtype_rules.h is.
//
// Rules give Sizes (a fresh contiguous result), a Geometry (a view of the first tensor), or a
// vector of either (a Tensor[] result). All throw Error of the kind PyTorch raises.
#pragma once

#include <optional>
#include <vector>

#include "engine/rules/arg.h"
#include "engine/rules/op.h"

namespace tt::shape_rules {

// Wraps a negative dimension; throws IndexError "Dimension out of range (expected to be in range
// of [-2, 1], but got 5)".
int64_t wrap_dim(int64_t dim, int64_t ndim);

Sizes broadcast_sizes(SizesView a, SizesView b);
Sizes broadcast_all(std::initializer_list<const Arg*> args);
template <typename... A>
Sizes broadcast(const A&... args) {
  return broadcast_all({&args...});
}
Sizes same(const Arg& tensor);
Sizes sizes(SizesView given);  // as given; throws on a negative one

// How the generated infer functions say one result (or a list of them).
void add(Inference* out, DType dtype, Sizes sizes);
void add(Inference* out, DType dtype, Geometry geometry);
void add(Inference* out, DType dtype, const std::vector<Sizes>& list);
void add(Inference* out, DType dtype, const std::vector<Geometry>& list);
void add_dynamic(Inference* out, DType dtype);

}  // namespace tt::shape_rules
