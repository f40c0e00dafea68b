// einsum and tensordot: sums of products over selected dimensions.
#pragma once

#include <string_view>

#include "client/api/tensor.h"

namespace teletensor {

/// An Einstein summation such as einsum("bij,bjk->bik", {a, b}). Contracts two operands at a time with one matrix
/// product, the pair with the smallest result first. Throws RuntimeError for subscripts that do not fit the operands.
Tensor einsum(std::string_view equation, TensorList operands);
/// Contracts the dimensions `dims_self` of a with the dimensions `dims_other` of b.
Tensor tensordot(const Tensor& a, const Tensor& b, IntArrayRef dims_self, IntArrayRef dims_other);

}  // namespace teletensor
