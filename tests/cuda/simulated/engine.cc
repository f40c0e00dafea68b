#include "tests/cuda/simulated/engine.h"

#include <cstdlib>

#include "engine/composites/composites.h"
#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/session/graphs.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/device.h"
#include "tests/kernels/tensors.h"

namespace tt::cuda {
namespace {

void assemble_once() {
  static const bool assembled = [] {
    // Half a second, so that a slow machine does not affect which sequences are replayed.
    setenv("TELETENSOR_CUDA_REPLAY", "500000", /*overwrite=*/0);
    set_runtime(make_runtime());
    std::string why;
    add_devices(Devices::instance(), &why);
    Dispatcher& dispatcher = Dispatcher::instance();
    cpu::register_backend(dispatcher);
    register_composites(dispatcher);
    register_graph_operators(dispatcher);
    register_backend(dispatcher);
    return true;
  }();
  static_cast<void>(assembled);
}

}  // namespace

SimulatedEngine::SimulatedEngine() : scope_((assemble_once(), &context_)) {
  context_.account = std::make_shared<Account>("session 1");
  testing::random_bits().seed();  // results of random operators must not depend on earlier tests
}

}  // namespace tt::cuda
