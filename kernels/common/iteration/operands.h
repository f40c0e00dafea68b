// Checks and views of a kernel's tensor operands.
#pragma once

#include <string_view>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Throws Error (RuntimeError) if `t` is defined and does not have `count` elements.
inline void check_elements(const Tensor& t, int64_t count, std::string_view what) {
  check(!t || t.numel() == count, "expected ", count, " elements of ", what, ", got ", t ? t.numel() : 0);
}
// Throws Error (RuntimeError) if `t` is defined and is not a vector of `channels` elements.
inline void check_per_channel(const Tensor& t, int64_t channels) {
  check(!t || (t.dim() == 1 && t.size(0) == channels), "expected one element for each of ", channels, " channels, got ",
        t ? to_string(t.sizes()) : "none");
}

// Returns `t`, or a view with one dimension of size 1 if `t` is zero-dimensional.
inline Tensor at_least_1d(const Tensor& t) { return t.dim() > 0 ? t : view_of(t, Geometry{{1}, {1}, t->offset}); }

// The elements of `t`, or null if `t` is undefined.
template <typename T>
const T* data_or_null(const Tensor& t) {
  return t ? t.data_as<T>() : nullptr;
}

}  // namespace tt
