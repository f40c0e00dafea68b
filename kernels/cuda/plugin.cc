#include "kernels/cuda/plugin.h"

#include <cstdio>
#include <string>

#include "engine/device/native_stream.h"
#include "engine/schema/op_ids.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/cuda/runtime/tracer.h"

#define TT_EXPORT __attribute__((visibility("default")))

namespace {

void* stream_handle(tt::Stream& stream) {
  tt::cuda::make_current(stream.device());
  stream.mark();
  return static_cast<tt::cuda::CudaStream&>(stream).handle();
}

}  // namespace

// Returns the digest that the plug-in was compiled with. schema_digest() would return the daemon's digest.
TT_EXPORT uint64_t teletensor_cuda_digest() { return tt::kSchemaDigest; }

TT_EXPORT int teletensor_cuda_register(tt::Devices* devices, tt::Dispatcher* dispatcher, char* why, size_t why_size) {
  try {
    std::string reason;
    tt::cuda::set_runtime(tt::cuda::make_runtime());
    const int count = tt::cuda::add_devices(*devices, &reason);
    if (count > 0) {
      tt::cuda::register_backend(*dispatcher);
      tt::set_native_stream(tt::DeviceType::kCUDA, &stream_handle);
      tt::set_device_tracer(tt::cuda::make_tracer().release());  // never destroyed: used until the process ends
    }
    std::snprintf(why, why_size, "%s", reason.c_str());
    return count;
  } catch (const std::exception& error) {
    std::snprintf(why, why_size, "%s", error.what());
    return 0;
  }
}
