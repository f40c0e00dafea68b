// Dnn: convolutions by a library.
#pragma once

#include <memory>

#include "kernels/common/nn/convolution_shape.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// A convolution, or one of its gradients, from two contiguous tensors to a third. None is empty.
struct DnnConvolution {
  DType dtype;  // floating
  ConvolutionShape shape;
  const void* first;
  const void* second;
  void* result;       // overwritten
  bool tf32 = false;  // whether float32 may be multiplied with fewer bits
};

class Dnn {
 public:
  virtual ~Dnn() = default;
  // Enqueues it: the result from input and weight; the input's gradient from the result's and the weight; the weight's
  // gradient from the result's and the input. False, and nothing done, where the library has no way for it.
  // Thread-safe. Throws Error (RuntimeError) where it fails.
  virtual bool forward(const Queue& queue, const DnnConvolution& c) = 0;
  virtual bool input(const Queue& queue, const DnnConvolution& c) = 0;
  virtual bool weight(const Queue& queue, const DnnConvolution& c) = 0;
};

// The process's, opened at first use: cuDNN. Null where it is absent: convolutions are our own kernels' then.
Dnn* dnn();
std::unique_ptr<Dnn> make_dnn();

}  // namespace tt::cuda
