// Region: a view's place in the bytes of its base, as functions of tensors.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::autograd {

// How a view lies in the bytes of its base; sizes, strides and offsets, in elements.
struct Region {
  Geometry base;
  Geometry view;
  DType dtype;
  Device device;

  // The view's part of a tensor shaped like the base.
  Tensor read(const Tensor& whole) const;
  // Zeros shaped like the base, but for `part` in the view's place. Elements that the view shows
  // several times collect.
  Tensor spread(const Tensor& part) const;
  // A copy of `whole` with zeros in the view's place.
  Tensor erase(const Tensor& whole) const;
};

// Writes `source` over `target`, recorded like any other operation.
void write(const Tensor& target, const Tensor& source);

}  // namespace tt::autograd
