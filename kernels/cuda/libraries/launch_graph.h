// LaunchGraph (runtime/runtime.h) as a graph of the CUDA runtime.
#pragma once

#include "kernels/cuda/runtime/kernel_launch.h"

namespace tt::cuda {

// Creates a graph on the current device. Throws Error (RuntimeError) if a launch cannot be captured or memory is short.
std::unique_ptr<LaunchGraph> make_cuda_graph(absl::Span<const KernelLaunch* const> launches);

}  // namespace tt::cuda
