// Queue: the calling context's stream on a device, to which kernels add their launches.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/runtime/stream.h"

namespace tt::cuda {

class Queue {
 public:
  explicit Queue(Device device);  // makes the device current on this thread
  StreamHandle stream() const { return stream_->handle(); }
  CudaStream& cuda_stream() const { return *stream_; }
  void add(const KernelLaunch& launch) const { stream_->add(launch); }
  // Calls f(stream), which issues work to the stream, now or later. Requires that `f` is trivially copyable and holds
  // all its data by value.
  template <typename F>
  void add(const F& f) const {
    add(*KernelLaunchWith<F>([](const KernelLaunch& launch, StreamHandle stream) { parameters_of<F>(launch)(stream); },
                             f));
  }
  // Enqueue a fill or a copy within the device.
  void fill(void* to, int byte, size_t bytes) const;
  void copy(void* to, const void* from, size_t bytes) const;
  Device device() const { return stream_->device(); }

 private:
  CudaStream* stream_;
};

// Returns the queue of the device of `t`. Requires a tensor on a CUDA device.
inline Queue queue_of(const Tensor& t) { return Queue(t.device()); }

}  // namespace tt::cuda
