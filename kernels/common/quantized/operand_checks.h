// Checks of the operands of integer products, which both backends make, and the errors in elements that each finds in
// its own way.
#pragma once

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Throws Error (RuntimeError) unless `t` has `count` real numbers, or one.
inline void check_column_numbers(const Tensor& t, int64_t count, const char* what) {
  check(t.numel() == 1 || t.numel() == count, "expected ", what, " with 1 or ", count, " elements, got ", t.numel());
  check(!is_complex(t.dtype()), "expected ", what, " of real numbers, got ", name(t.dtype()));
}
inline void check_one_number(const Tensor& t) {
  check(t.numel() == 1, "expected one number, got ", t.numel());
  check(!is_complex(t.dtype()), "expected a real number, got ", name(t.dtype()));
}
inline Error zero_point_outside(int64_t zero_point) {
  return Error(ErrorKind::kRuntime,
               absl::StrCat("expected a zero point in the range of the input's dtype, got ", zero_point));
}
inline Error wider_than_int32(const char* what, double number) {
  return Error(ErrorKind::kRuntime, absl::StrCat("expected ", what, " to be integers of 32 bits, got ", number));
}

}  // namespace tt
