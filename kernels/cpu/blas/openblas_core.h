// Which of OpenBLAS's sets of kernels runs on this machine.
//
// OpenBLAS chooses one when it is loaded, by the processor's model number. A release does not know the models that came
// after it, and takes kernels of 2004 (SSE3) for some of them, which are three to eight times slower.
#pragma once

#include <string_view>

namespace tt::cpu {

// What OpenBLAS's kernels require of a processor.
struct VectorUnits {
  bool avx2 = false;    // with FMA
  bool avx512 = false;  // F, DQ, BW, CD and VL
};

// The name of the kernels to use instead of `detected`, OpenBLAS's own choice. Empty if that is suitable.
std::string_view better_openblas_core(std::string_view detected, VectorUnits units);

// Replaces OpenBLAS's choice if the machine has vector units that it does not use and the user has set no
// OPENBLAS_CORETYPE. Does nothing with a BLAS that has only one set of kernels. Call once per process, before any
// product; other threads must not change the environment meanwhile.
void choose_openblas_core();

// The name of the kernels in use; empty if the BLAS does not tell.
std::string_view openblas_core();

}  // namespace tt::cpu
