// The compiler of simulated devices: the host's, where TELETENSOR_SIMULATED_CXX names it, else none.
//
// Each source becomes a library, whose kernel is run by one thread of a grid of one.
#pragma once

#include "kernels/cuda/runtime/compiler.h"

namespace tt::cuda {

// How many sources have become kernels in this process.
int simulated_compilations();

}  // namespace tt::cuda
