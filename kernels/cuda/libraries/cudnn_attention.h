// Execution plans of cuDNN's attention, without a device. Only tests use this header: they show, on machines without a
// GPU, which cases cuDNN accepts.
#pragma once

#include <string>

#include "kernels/cuda/runtime/fused_attention.h"

namespace tt::cuda {

// For tests, which examine cases of GPUs that their machine does not have. Builds the execution plan of a call for a
// device that need not be present. `device` describes it as JSON, as
// cudnnBackendGetAttribute returns it for CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION; `capability` is its compute
// capability, as 90 for 9.0. Nothing is read from the addresses in the call. Returns the reason if cuDNN rejects the
// case or the addresses, else an empty string. Requires make_fused_attention() to have returned an object.
std::string why_attention_is_rejected(const FusedAttentionCall& call, bool backward, const std::string& device,
                                      int capability);

}  // namespace tt::cuda
