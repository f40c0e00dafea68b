// Queue: where a kernel's work goes: the calling context's stream on the device of what it computes.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/runtime/stream.h"

namespace tt::cuda {

class Queue {
 public:
  explicit Queue(Device device);  // makes the device current on this thread
  StreamHandle stream() const { return stream_->handle(); }
  CudaStream& cuda_stream() const { return *stream_; }
  void add(const Work& work) const { stream_->add(work); }
  // f(stream), which issues something to it, now or later: everything that it needs, it has by value, as plain bytes.
  template <typename F>
  void add(const F& f) const {
    add(*WorkWith<F>([](const Work& work, StreamHandle stream) { parameters_of<F>(work)(stream); }, f));
  }
  // In the queue's order, within the device.
  void fill(void* to, int byte, size_t bytes) const;
  void copy(void* to, const void* from, size_t bytes) const;
  Device device() const { return stream_->device(); }

 private:
  CudaStream* stream_;
};

// The usual way to make one. Requires a tensor on a CUDA device.
inline Queue queue_of(const Tensor& t) { return Queue(t.device()); }

}  // namespace tt::cuda
