// backends: what this process computes with.
#pragma once

#include <cstdint>

namespace tt::server {

// Registers devices, kernels, gradients and the server's own operators; once, before the first session. `threads` is
// for one operation (0: one a core), `memory_limit` for all tensors of each device (0: none).
void register_backends(int threads, uint64_t memory_limit);

}  // namespace tt::server
