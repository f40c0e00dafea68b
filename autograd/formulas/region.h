// Region: the elements that a view occupies in the storage of its base.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::autograd {

// The layouts of a view and of its base in one storage. Strides and offsets are in elements of the dtype of each: both
// dtypes are equal, or one is complex and the other one that of its parts.
struct Region {
  Geometry base;
  Geometry view;
  DType dtype;
  DType view_dtype;
  Device device;

  // Returns the view's elements of a tensor shaped like the base.
  Tensor gather(const Tensor& whole) const;
  // Returns a tensor shaped like the base: `part` at the view's elements, zeros elsewhere. An element that occurs
  // several times in the view is the sum of the corresponding elements of `part`.
  Tensor scatter(const Tensor& part) const;
  // Returns a copy of `whole` with zeros at the view's elements.
  Tensor zero_out(const Tensor& whole) const;

 private:
  // The region in elements of the real dtype, if the dtypes differ. The last dimension of a complex tensor is its
  // parts.
  Region of_parts() const;
};

// Copies `source` into `target` as a recorded operation.
void write(const Tensor& target, const Tensor& source);

}  // namespace tt::autograd
