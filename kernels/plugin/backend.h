// The Backend, Stream and Event of a device of a DeviceLibrary.
#pragma once

#include <memory>

#include "engine/device/backend.h"
#include "engine/memory/alloc_conf.h"
#include "kernels/plugin/library.h"

namespace tt::plugin {

// Returns a backend with a caching pool over the library's segments, which allocates at most `total_memory` bytes.
// `library` must live as long as the process. Allocates nothing before its first use.
std::unique_ptr<Backend> make_backend(DeviceLibrary& library, Device device, uint64_t total_memory,
                                      const AllocConf& conf);

}  // namespace tt::plugin
