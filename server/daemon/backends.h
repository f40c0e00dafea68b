// backends: registers the devices and kernels of this process.
#pragma once

#include <cstdint>

namespace tt::server {

// Registers devices, kernels, gradients and the server's own operators. Call once, before the first session. `threads`
// is per operation (0: one per core); `memory_limit` bounds all tensors of each device (0: no limit).
void register_backends(int threads, uint64_t memory_limit);

}  // namespace tt::server
