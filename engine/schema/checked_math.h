// Checked arithmetic of sizes, strides and offsets.
//
// Rules compute with numbers from clients: signed overflow would be undefined, or produce a size that passes later
// checks. Tensors' metas are bounded (infer() rejects sizes that exceed 64 bits, in bytes); other integers are not.
// Pure functions; on overflow they throw Error (RuntimeError).
#pragma once

#include <cstdint>

#include "engine/schema/error.h"
#include "engine/schema/sym_int.h"

namespace tt {

inline SymInt checked_add(SymInt a, SymInt b) {
  SymInt sum = 0;
  check(!add_overflows(a, b, &sum), "integer overflow: ", a, " + ", b, " does not fit into 64 bits");
  return sum;
}

inline SymInt checked_sub(SymInt a, SymInt b) {
  SymInt difference = 0;
  check(!subtract_overflows(a, b, &difference), "integer overflow: ", a, " - ", b, " does not fit into 64 bits");
  return difference;
}

inline SymInt checked_mul(SymInt a, SymInt b) {
  SymInt product = 0;
  check(!multiply_overflows(a, b, &product), "integer overflow: ", a, " * ", b, " does not fit into 64 bits");
  return product;
}

// The absolute value; also defined for INT64_MIN.
inline uint64_t magnitude(int64_t v) {
  return v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
}

// Return a stride times a factor, and the sum of two strides. All elements of a tensor are within 2^63 bytes, so only
// the stride of a dimension of at most one element can overflow. That stride is never used, so 1 replaces it.
inline SymInt scaled_stride(SymInt stride, SymInt factor) {
  SymInt product = 0;
  return multiply_overflows(stride, factor, &product) ? SymInt(1) : product;
}

inline SymInt added_stride(SymInt a, SymInt b) {
  SymInt sum = 0;
  return add_overflows(a, b, &sum) ? SymInt(1) : sum;
}

}  // namespace tt
