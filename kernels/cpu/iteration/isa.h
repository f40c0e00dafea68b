// The instruction set that the user selected, for kernels that choose their loops themselves.
#pragma once

namespace tt::cpu {

// Whether loops may use AVX-512 where the machine has it: TELETENSOR_CPU_ISA is not set, or is avx512.
bool allows_avx512();

}  // namespace tt::cpu
