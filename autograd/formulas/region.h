// Region: the elements that a view occupies in the storage of its base.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::autograd {

// The layouts of a view and of its base in one storage. Strides and offsets are in elements.
struct Region {
  Geometry base;
  Geometry view;
  DType dtype;
  Device device;

  // Returns the view's elements of a tensor shaped like the base.
  Tensor gather(const Tensor& whole) const;
  // Returns a tensor shaped like the base: `part` at the view's elements, zeros elsewhere. An element that occurs
  // several times in the view is the sum of the corresponding elements of `part`.
  Tensor scatter(const Tensor& part) const;
  // Returns a copy of `whole` with zeros at the view's elements.
  Tensor zero_out(const Tensor& whole) const;
};

// Copies `source` into `target` as a recorded operation.
void write(const Tensor& target, const Tensor& source);

}  // namespace tt::autograd
