#include "kernels/cuda/plugin.h"

#include "engine/rules/op.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/runtime.h"

#define TT_EXPORT __attribute__((visibility("default")))

TT_EXPORT uint64_t teletensor_cuda_digest() { return tt::schema_digest(); }

TT_EXPORT int teletensor_cuda_register(tt::Devices* devices, tt::Dispatcher* dispatcher, std::string* why) {
  try {
    tt::cuda::set_runtime(tt::cuda::make_runtime());
    const int count = tt::cuda::add_devices(*devices, why);
    if (count > 0) tt::cuda::register_backend(*dispatcher);
    return count;
  } catch (const std::exception& error) {
    *why = error.what();
    return 0;
  }
}
