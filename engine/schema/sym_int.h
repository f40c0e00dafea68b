// SymInt: the type of sizes, strides and offsets, and of integers that become ones.
//
// The schema is compiled twice. A client and an engine compute with integers. While sizes are symbols, a trace uses the
// same rules in the namespace tt_symbolic, where a SymInt may be an expression (symbolic_int.h). A rule is
// written for both: it declares what may depend on a size as SymInt, and chooses with larger() and smaller() instead of
// comparing. A conversion of a SymInt to an integer is allowed everywhere; of an expression it assumes the example's
// value.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#ifdef TT_SYMBOLIC_SIZES
#include "engine/schema/symbolic_int.h"
#else

namespace tt {

using SymInt = int64_t;

inline SymInt larger(SymInt a, SymInt b) { return std::max(a, b); }
inline SymInt smaller(SymInt a, SymInt b) { return std::min(a, b); }
// Return whether the result is beyond 64 bits, and set it otherwise.
inline bool add_overflows(SymInt a, SymInt b, SymInt* sum) { return __builtin_add_overflow(a, b, sum); }
inline bool subtract_overflows(SymInt a, SymInt b, SymInt* difference) {
  return __builtin_sub_overflow(a, b, difference);
}
inline bool multiply_overflows(SymInt a, SymInt b, SymInt* product) { return __builtin_mul_overflow(a, b, product); }
// The product modulo 2^64, for numbers that infer() rejects afterwards if they are excessive.
inline SymInt wrapped_product(SymInt a, SymInt b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline SymInt divided_up(SymInt a, SymInt b) { return a / b + (a % b != 0); }  // rounded up; a >= 0 and b > 0
// Whether the two are equal in all runs. Unlike a comparison, it assumes nothing.
inline bool surely_equal(SymInt a, SymInt b) { return a == b; }
// The value for the example, for decisions of which only strides depend: where a size of 1 or 0 leaves more than one
// layout open, a run may have another one than the example. Assumes nothing.
inline int64_t hint_of(SymInt d) { return d; }
// Whether a number is at most a limit of this implementation, which each run checks itself: assumes nothing.
inline bool is_within(SymInt d, int64_t limit) { return d <= limit; }
inline bool is_expression(SymInt) { return false; }
inline int64_t text_of(SymInt d) { return d; }  // for messages

}  // namespace tt

#endif

namespace tt {

// The type of a parameter that takes a SymInt or an integer of 64 bits.
template <typename T>
concept SymIntOrInteger = std::same_as<T, SymInt> || std::same_as<T, int64_t>;

}  // namespace tt
