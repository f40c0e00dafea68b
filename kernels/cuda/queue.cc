#include "kernels/cuda/queue.h"

#include "engine/context.h"

namespace tt::cuda {

void make_current(Device device) {
  thread_local int current = -1;  // cudaSetDevice costs more than this comparison
  if (current == device.index) return;
  runtime().set_device(device.index);
  current = device.index;
}

Queue::Queue(Device device) : stream_(static_cast<CudaStream*>(&Context::current().stream(device))) {
  make_current(device);
}

void Queue::fill(void* to, int byte, size_t bytes) const {
  add([=](StreamHandle stream) { runtime().fill(to, byte, bytes, stream); });
}

void Queue::copy(void* to, const void* from, size_t bytes) const {
  add([=](StreamHandle stream) { runtime().copy(to, from, bytes, stream); });
}

}  // namespace tt::cuda
