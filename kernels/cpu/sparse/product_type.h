// with_product_type: dispatches from a dtype to the type in which products are computed.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/common/iteration/element.h"

namespace tt::cpu {

// Calls f with the std::type_identity of an accumulate_type() that has a product. Throws Error (NotImplementedError)
// for bool and for the 16-bit floats.
template <typename F>
void with_product_type(DType dtype, F f) {
  with_any_element(dtype, [&]<typename T>(std::type_identity<T> type) {
    if constexpr (std::is_same_v<T, Bool> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
    } else {
      f(type);
    }
  });
}

}  // namespace tt::cpu
