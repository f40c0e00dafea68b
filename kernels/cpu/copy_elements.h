// copy_elements: moves a tensor's elements to memory that lies otherwise.
#pragma once

#include "engine/tensor.h"

namespace tt::cpu {

// to[i, j, ...] = from[i, j, ...]: `to` has from's dtype, and lies with `strides` over from's sizes.
void copy_elements(const Tensor& from, void* to, SizesView strides);
// A contiguous tensor of from's dtype and sizes: fills all of it.
void copy_elements(const Tensor& from, Tensor& to);

}  // namespace tt::cpu
