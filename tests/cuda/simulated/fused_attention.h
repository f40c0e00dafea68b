// FusedAttention of simulated devices: plain loops, run when the stream reaches them. Fails for calls that cuDNN does
// not support. It is not available if TELETENSOR_SIMULATED_WITHOUT lists "cudnn".
#pragma once

namespace tt::cuda {

// What tests observe and control.
struct SimulatedAttention {
  int forward = 0, backward = 0;  // calls that were computed
  bool rejects = false;           // rejects every call, as cuDNN rejects some shapes
};
SimulatedAttention& simulated_attention();

}  // namespace tt::cuda
