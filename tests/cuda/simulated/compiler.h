// The compiler of simulated devices: the host's, where TELETENSOR_SIMULATED_CXX names it, else none.
//
// Each source becomes a library, whose kernel is run by the threads of a small grid, one after the other, the last
// first.
#pragma once

#include "kernels/cuda/runtime/compiler.h"

namespace tt::cuda {

// How many sources have become kernels in this process.
int simulated_compilations();

}  // namespace tt::cuda
