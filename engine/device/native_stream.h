// native_stream(): a stream's handle in the device's own library, for libraries that are opened at run time by floors
// above the engine (NCCL).
#pragma once

#include "engine/device/stream.h"

namespace tt {

// Returns the handle (cudaStream_t) after all work issued so far has been handed to the device's library, and makes the
// stream's device current for the calling thread. Null if the device has no such library, as the CPU. The handle is
// valid as long as the device; it must not be destroyed. Used by the stream's thread.
void* native_stream(Stream& stream);

// Sets the function that implements native_stream() for a type of devices. Called at start, by their backend.
void set_native_stream(DeviceType type, void* (*function)(Stream& stream));

}  // namespace tt
