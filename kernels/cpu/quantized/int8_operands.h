// Operands of products of 8-bit integers: contiguous unsigned rows, and zero points.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Unsigned integers x with the values (x - zero_point) of a tensor of uint8 or int8.
struct UnsignedOperand {
  Tensor values;  // contiguous
  int32_t zero_point;
};

// Adds 128 to signed integers and to their zero point, so that both are unsigned. Throws Error (RuntimeError) if the
// zero point is not an integer of the tensor's dtype.
UnsignedOperand as_unsigned(const Tensor& t, int64_t zero_point);
// The only element of a tensor of integers or floating-point numbers.
int64_t integer_of(const Tensor& number);
double number_of(const Tensor& number);
// `count` int32 or float32 numbers: the tensor's elements, or its only element repeated. Throws Error (RuntimeError)
// for another number of elements, complex numbers, or integers of more than 32 bits.
Tensor integers(const Tensor& t, int64_t count, const char* name);
Tensor numbers(const Tensor& t, int64_t count, const char* name);

}  // namespace tt::cpu
