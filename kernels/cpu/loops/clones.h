// TT_CLONES: compiles a leaf loop for the baseline, AVX2 and AVX-512; the loader picks at start.
//
// What a clone calls must be inlined into it to profit. Sanitizers' runtimes are not up yet when
// the loader asks for the choice, so their builds get the baseline alone. So do clang's, which cannot clone templates.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__) || !defined(__x86_64__)
#define TT_CLONES
#else
#define TT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
