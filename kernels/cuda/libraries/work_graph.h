// The graphs of cudart that runtime.h speaks of.
#pragma once

#include "kernels/cuda/runtime/work.h"

namespace tt::cuda {

// On the current device. Throws Error where one of the works cannot be kept, or memory is short.
std::unique_ptr<WorkGraph> make_cuda_graph(absl::Span<const Work* const> works);

}  // namespace tt::cuda
