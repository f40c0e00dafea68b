// SimulatedEngine: the CPU's and the CUDA backend in this process, the latter over simulated devices.
//
// The backends are made once a process; each SimulatedEngine is a session of its own, current on its thread.
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
