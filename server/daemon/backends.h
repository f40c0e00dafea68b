// backends: registers the devices and kernels of this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tt::server {

// Device libraries, or folders of them, and whether the CPU executes the operators for which they have no kernel.
struct DeviceLibraries {
  std::vector<std::string> paths;
  bool fallback = true;
};

// Registers devices, kernels, gradients and the server's own operators. Call once, before the first session. `threads`
// is per operation (0: one per core); `memory_limit` bounds all tensors of each device (0: no limit).
// Half of the CPU's limit bounds the sessions' bookkeeping.
void register_backends(int threads, uint64_t memory_limit, const DeviceLibraries& libraries = {});

}  // namespace tt::server
