// Dnn: interface to a library for convolutions.
#pragma once

#include <memory>

#include "kernels/common/nn/convolution_shape.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// A convolution, or one of its gradients: computes a contiguous tensor from two contiguous tensors. No tensor is empty.
struct DnnConvolution {
  DType dtype;  // floating-point
  ConvolutionShape shape;
  const void* first;   // forward(): the input; input() and weight(): the result's gradient
  const void* second;  // forward() and input(): the weight; weight(): the input
  void* result;        // overwritten
  bool tf32 = false;   // whether float32 products may use TF32
};

class Dnn {
 public:
  virtual ~Dnn() = default;
  // Enqueue the computation. forward() computes the result from the input and the weight. input() computes the input's
  // gradient, and weight() the weight's gradient, from the result's gradient and the other argument. Return false, and
  // do nothing, if the library does not support the case. Thread-safe. Throw Error (RuntimeError) on failure.
  virtual bool forward(const Queue& queue, const DnnConvolution& c) = 0;
  virtual bool input(const Queue& queue, const DnnConvolution& c) = 0;
  virtual bool weight(const Queue& queue, const DnnConvolution& c) = 0;
};

// Returns the process-wide instance, loaded at first use: cuDNN. Returns null if cuDNN is missing; convolutions then
// use our own kernels.
Dnn* dnn();
std::unique_ptr<Dnn> make_dnn();

}  // namespace tt::cuda
