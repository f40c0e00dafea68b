// SimulatedEngine: the CPU backend, and the CUDA backend on simulated devices, in this process.
//
// The backends are created once per process. Each SimulatedEngine is a new session, current on its thread.
#pragma once

#include <memory>

#include "engine/session/context.h"
#include "tests/cuda/simulated/runtime.h"

namespace tt::cuda {

class SimulatedEngine {
 public:
  SimulatedEngine();
  Device gpu(int index = 0) const { return Device{DeviceType::kCUDA, static_cast<int8_t>(index)}; }
  SimulatedRuntime& runtime() const { return simulated_runtime(); }
  Context& context() { return context_; }

 private:
  Context context_;
  ContextScope scope_;
};

}  // namespace tt::cuda
