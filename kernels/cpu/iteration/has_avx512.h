// Whether to use AVX-512: this machine has it, and TELETENSOR_CPU_ISA does not name another instruction set.
#pragma once

#include "kernels/cpu/iteration/isa.h"

namespace tt::cpu {

inline bool has_avx512() {
#if defined(__x86_64__)
  return allows_avx512() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace tt::cpu
