// Runtime functions of the compiled `grad` and `composite` expressions, in addition to operators: numbers with Python's
// arithmetic, lists, and properties of tensors.
#pragma once

#include <cmath>
#include <optional>

#include "engine/dispatch/operand.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

using Floats = absl::InlinedVector<double, 4>;

inline const Sizes& sizes_of(const TensorMeta& t) { return t.sizes; }
inline const Sizes& sizes_of(const Tensor& t) { return t->sizes; }
inline DType dtype_of(const TensorMeta& t) { return t.dtype; }
inline DType dtype_of(const Tensor& t) { return t->dtype; }
inline Device device_of(const TensorMeta& t) { return t.device; }
inline Device device_of(const Tensor& t) { return t->device; }
inline int64_t dim_of(const TensorMeta& t) { return t.dim(); }
inline int64_t dim_of(const Tensor& t) { return t->dim(); }
inline int64_t numel_of(const TensorMeta& t) { return t.numel(); }
inline int64_t numel_of(const Tensor& t) { return t->numel(); }

// A number passed for a tensor has no sizes.
const Sizes& sizes_of(const Operand& t);
DType dtype_of(const Operand& t);
inline int64_t dim_of(const Operand& t) { return static_cast<int64_t>(sizes_of(t).size()); }
int64_t numel_of(const Operand& t);

// Returns an entry of a list; a negative index counts from the end. Throws Error (IndexError).
template <typename List>
auto at(const List& list, int64_t index) {
  int64_t size = static_cast<int64_t>(list.size());
  if (index < 0) index += size;
  check(ErrorKind::kIndex, index >= 0 && index < size, "list index out of range, got ", index, " of ", size);
  return list[static_cast<size_t>(index)];
}
// Returns list[begin:end] with Python's rules.
Sizes slice_list(SizesView list, std::optional<int64_t> begin, std::optional<int64_t> end);
Sizes concatenate(SizesView a, SizesView b);
Floats floats_of(SizesView list);

namespace number {
inline int64_t add(int64_t a, int64_t b) { return a + b; }
inline double add(double a, double b) { return a + b; }
inline int64_t sub(int64_t a, int64_t b) { return a - b; }
inline double sub(double a, double b) { return a - b; }
inline int64_t mul(int64_t a, int64_t b) { return a * b; }
inline double mul(double a, double b) { return a * b; }
inline double div(double a, double b) { return a / b; }
inline double pow(double a, double b) { return std::pow(a, b); }
int64_t floordiv(int64_t a, int64_t b);  // rounds down; throws Error (ValueError) on b == 0
inline double floordiv(double a, double b) { return std::floor(a / b); }
int64_t mod(int64_t a, int64_t b);  // has b's sign; throws Error (ValueError) on b == 0
inline double mod(double a, double b) { return a - b * std::floor(a / b); }
// The result is an integer if both operands are.
Scalar neg(const Scalar& a);
Scalar add(const Scalar& a, const Scalar& b);
Scalar sub(const Scalar& a, const Scalar& b);
Scalar mul(const Scalar& a, const Scalar& b);
Scalar div(const Scalar& a, const Scalar& b);
Scalar pow(const Scalar& a, const Scalar& b);
}  // namespace number

}  // namespace tt
