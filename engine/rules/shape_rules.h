// The vocabulary of `shape:` in the operators' declarations. Closed, as dtype_rules.h is.
//
// Rules give Sizes (a fresh contiguous result), a Geometry (a view of the first tensor), or a
// vector of either (a Tensor[] result). All throw Error of the kind PyTorch raises.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "engine/rules/arg.h"
#include "engine/rules/op.h"

namespace tt::shape_rules {

// Wraps a negative dimension; throws IndexError "Dimension out of range (expected to be in range
// of [-2, 1], but got 5)". A zero-dim tensor is taken to have one.
int64_t wrap_dim(int64_t dim, int64_t ndim);

Sizes broadcast_sizes(SizesView a, SizesView b);
// Numbers and absent optionals take no part.
Sizes broadcast_all(std::initializer_list<const Arg*> args);
template <typename... A>
Sizes broadcast(const A&... args) {
  return broadcast_all({&args...});
}
Sizes same(const Arg& tensor);  // a number: zero dimensions
Sizes sizes(SizesView given);   // as given; throws on a negative one

// Creation.
Sizes arange(Scalar start, Scalar end, Scalar step);
Sizes steps(int64_t count);
Sizes eye(int64_t n, std::optional<int64_t> m);
Sizes literal(std::string_view bytes, SizesView size, DType dtype);
Sizes randint(int64_t low, int64_t high, SizesView size);
Sizes randperm(int64_t n);
Sizes multinomial(const Arg& input, int64_t num_samples, bool replacement);

// Pointwise operators that ask more than that their arguments broadcast.
Sizes assign(const Arg& input, const Arg& src);  // input's; src must broadcast to it
Sizes masked_fill(const Arg& input, const Arg& mask, const Arg& value);
Sizes prelu(const Arg& input, const Arg& weight);
Sizes glu(const Arg& input, int64_t dim);
Sizes gelu(const Arg& input, std::string_view approximate);

// How the generated infer functions say one result (or a list of them).
void add(Inference* out, DType dtype, Sizes sizes);
void add(Inference* out, DType dtype, Geometry geometry);
void add(Inference* out, DType dtype, const std::vector<Sizes>& list);
void add(Inference* out, DType dtype, const std::vector<Geometry>& list);
void add_dynamic(Inference* out, DType dtype);

}  // namespace tt::shape_rules
