// with_float8: dispatches from an 8-bit floating dtype to the C++ type of its elements.
#pragma once

#include <type_traits>

#include "engine/schema/dtype.h"
#include "engine/schema/float8.h"

namespace tt {

// Requires is_float8(dtype). Separate from with_element (element.h), so that no kernel computes in float8 by
// accident.
template <typename F>
decltype(auto) with_float8(DType dtype, F&& f) {
  if (dtype == DType::kFloat8E4m3fn) return f(std::type_identity<Float8E4m3fn>());
  return f(std::type_identity<Float8E5m2>());
}

}  // namespace tt
