// The vocabulary of `dtype:` and `compute:` in the operators' declarations. Closed: what does not
// fit is written in C++ here, and gets a name. Tensors arrive as Args, since a number of the
// user's may stand in their place. All throw Error (RuntimeError or TypeError).
#pragma once

#include <initializer_list>
#include <optional>

#include "engine/rules/arg.h"
#include "engine/rules/op.h"

namespace tt::dtype_rules {

// PyTorch's promotion: tensors with dimensions decide before zero-dim tensors, those before
// numbers; a lower rank counts only where its category is higher. Absent optionals and lists'
// entries take part or not as they are.
DType promote_all(std::initializer_list<const Arg*> args);
template <typename... A>
DType promote(const A&... args) {
  return promote_all({&args...});
}
DType same(const Arg& tensor);  // a number: its default dtype
inline DType floating(DType t) { return to_float(t); }  // integers become the default float
template <typename... A>
DType floating(const Arg& first, const A&... rest) {
  return to_float(promote(first, rest...));
}
inline DType boolean() { return DType::kBool; }
inline DType index() { return DType::kInt64; }
inline DType arg(std::optional<DType> given, DType otherwise) { return given.value_or(otherwise); }
// What sums accumulate in and return: int64 for bool and integers.
DType accumulated(const Arg& tensor);

}  // namespace tt::dtype_rules
