#include "kernels/cuda/runtime/queue.h"

#include "engine/session/context.h"

namespace tt::cuda {

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
