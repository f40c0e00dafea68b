// TT_CLONES: compiles a leaf function for the baseline and for the instruction sets of the build; the dynamic loader
// selects one at start.
//
// Functions that a clone calls must be inlined into it to benefit. Sanitizer builds get only the baseline, because the
// loader selects before the sanitizer runtime is initialised. Clang builds get only the baseline too, because clang
// cannot clone templates.
#pragma once

#include "kernels/cpu/iteration/instruction_sets.h"

#if defined(__clang__) || !(TT_COMPILE_AVX2 || TT_COMPILE_AVX512)
#define TT_CLONES
#elif TT_COMPILE_AVX2 && TT_COMPILE_AVX512
#define TT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif TT_COMPILE_AVX512
#define TT_CLONES __attribute__((target_clones("arch=x86-64-v4", "default")))
#else
#define TT_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#endif
