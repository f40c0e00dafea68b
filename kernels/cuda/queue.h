// Queue: where a kernel's work goes: the calling context's stream on the device of what it computes.
#pragma once

#include "engine/tensor.h"
#include "kernels/cuda/stream.h"

namespace tt::cuda {

class Queue {
 public:
  explicit Queue(Device device);  // makes the device current on this thread
  StreamHandle stream() const { return stream_->handle(); }
  CudaStream& cuda_stream() const { return *stream_; }
  Device device() const { return stream_->device(); }

 private:
  CudaStream* stream_;
};

// The usual way to make one. Requires a tensor on a CUDA device.
inline Queue queue_of(const Tensor& t) { return Queue(t.device()); }

}  // namespace tt::cuda
