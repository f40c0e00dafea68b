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
  const void* first;
  const void* second;
  void* result;       // overwritten
  bool tf32 = false;  // whether float32 products may use TF32
};

class Dnn {
 public:
  virtual ~Dnn() = default;
  // Enqueues the computation: forward computes the result from input and weight; input and weight compute the gradient
  // of that argument from the result's gradient and the other argument. Returns false, and does nothing, if the library
  // does not support the case. Thread-safe. Throws Error (RuntimeError) on failure.
  virtual bool forward(const Queue& queue, const DnnConvolution& c) = 0;
  virtual bool input(const Queue& queue, const DnnConvolution& c) = 0;
  virtual bool weight(const Queue& queue, const DnnConvolution& c) = 0;
};

// Returns the process-wide instance, loaded at first use: cuDNN. Returns null if it is missing; convolutions then use
// the kernels of this folder.
Dnn* dnn();
std::unique_ptr<Dnn> make_dnn();

}  // namespace tt::cuda
