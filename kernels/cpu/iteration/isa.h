// The instruction set that the user selected, for kernels that choose their loops themselves.
#pragma once

namespace tt::cpu {

// Whether loops may use AVX-512 where the machine has it: TELETENSOR_CPU_ISA is not set, or is avx512.
bool allows_avx512();
// Whether loops may use AVX2 where the machine has it: TELETENSOR_CPU_ISA is not baseline.
bool allows_avx2();

}  // namespace tt::cpu
