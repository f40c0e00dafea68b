#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {
namespace {

std::unique_ptr<Runtime>& the_runtime() {
  static auto* runtime = new std::unique_ptr<Runtime>;  // never destroyed: storages and streams may outlive main
  return *runtime;
}

}  // namespace

Runtime& runtime() { return *the_runtime(); }
void set_runtime(std::unique_ptr<Runtime> runtime) { the_runtime() = std::move(runtime); }

void make_current(Device device) {
  thread_local int current = -1;  // cudaSetDevice costs more than this comparison
  if (current == device.index) return;
  runtime().set_device(device.index);
  current = device.index;
}

}  // namespace tt::cuda
