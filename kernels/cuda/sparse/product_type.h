// with_product_element: dispatches from a dtype to the type of elements that have a product.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/common/iteration/element.h"

namespace tt::cuda {

// Calls f with std::type_identity of the element type. Throws Error (NotImplementedError) for bool.
template <typename F>
void with_product_element(DType dtype, F f) {
  with_any_element(dtype, [&]<typename T>(std::type_identity<T> type) {
    if constexpr (std::is_same_v<T, Bool>) {
      fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
    } else {
      f(type);
    }
  });
}

}  // namespace tt::cuda
