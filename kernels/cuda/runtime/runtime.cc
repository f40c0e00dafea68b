#include "kernels/cuda/runtime/runtime.h"

#include <array>
#include <atomic>

namespace tt::cuda {
namespace {

std::unique_ptr<Runtime>& the_runtime() {
  static auto* runtime = new std::unique_ptr<Runtime>;  // never destroyed: storages and streams may outlive main
  return *runtime;
}

}  // namespace

Runtime& runtime() { return *the_runtime(); }
void set_runtime(std::unique_ptr<Runtime> runtime) { the_runtime() = std::move(runtime); }

int compute_capability(int device) {
  static std::array<std::atomic<int>, 128> known{};  // the query is slow
  std::atomic<int>& capability = known[static_cast<size_t>(device)];
  if (capability == 0) {
    const Properties properties = runtime().properties(device);
    capability = 10 * properties.major + properties.minor;
  }
  return capability;
}

EventHandle record_event(StreamHandle stream, bool timed) {
  const EventHandle event = runtime().create_event(timed);
  try {
    runtime().record(event, stream);
  } catch (...) {
    runtime().destroy_event(event);
    throw;
  }
  return event;
}

void make_current(Device device) {
  thread_local int current = -1;  // cudaSetDevice costs more than this comparison
  if (current == device.index) return;
  runtime().set_device(device.index);
  current = device.index;
}

}  // namespace tt::cuda
