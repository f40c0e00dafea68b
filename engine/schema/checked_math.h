// Checked arithmetic of sizes, strides and offsets.
//
// Rules compute with numbers from clients: signed overflow would be undefined, or produce a size that passes later
// checks. Tensors' metas are bounded (infer() rejects sizes that exceed 64 bits, in bytes); other integers are not.
// Pure functions; on overflow they throw Error (RuntimeError).
#pragma once

#include <cstdint>

#include "engine/schema/error.h"

namespace tt {

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  check(!__builtin_add_overflow(a, b, &sum), "integer overflow: ", a, " + ", b, " does not fit into 64 bits");
  return sum;
}

inline int64_t checked_sub(int64_t a, int64_t b) {
  int64_t difference = 0;
  check(!__builtin_sub_overflow(a, b, &difference), "integer overflow: ", a, " - ", b, " does not fit into 64 bits");
  return difference;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  check(!__builtin_mul_overflow(a, b, &product), "integer overflow: ", a, " * ", b, " does not fit into 64 bits");
  return product;
}

// The absolute value; also defined for INT64_MIN.
inline uint64_t magnitude(int64_t v) {
  return v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
}

// Return a stride times a factor, and the sum of two strides. All elements of a tensor are within 2^63 bytes, so only
// the stride of a dimension of at most one element can overflow. That stride is never used, so 1 replaces it.
inline int64_t scaled_stride(int64_t stride, int64_t factor) {
  int64_t product = 0;
  return __builtin_mul_overflow(stride, factor, &product) ? 1 : product;
}

inline int64_t added_stride(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? 1 : sum;
}

}  // namespace tt
