// TT_CLONES: compiles a leaf function for the baseline, AVX2 and AVX-512; the dynamic loader selects one at start.
//
// Functions that a clone calls must be inlined into it to benefit. Sanitizer builds get only the baseline, because the
// loader selects before the sanitizer runtime is initialised. Clang builds get only the baseline too, because clang
// cannot clone templates.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__) || !defined(__x86_64__)
#define TT_CLONES
#else
#define TT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
