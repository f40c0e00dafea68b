// The compiler of simulated devices: the host compiler in TELETENSOR_SIMULATED_CXX; none if it is not set.
//
// Each source becomes a shared library. The threads of a small grid run its kernel one after the other, in reverse
// order.
#pragma once

#include "kernels/cuda/runtime/compiler.h"

namespace tt::cuda {

// The number of sources compiled in this process.
int simulated_compilations();

}  // namespace tt::cuda
