// Conversion of float16 arrays to and from float, in hardware if the instruction set supports it.
#pragma once

#include <cstdint>

#include "engine/schema/half.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace tt::cpu::TT_ISA {

#ifdef __F16C__

inline void widen(const Half* src, int64_t n, float* dst) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i));
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(bits));
  }
  for (; i < n; ++i) dst[i] = _cvtsh_ss(src[i].bits);
}

inline void narrow(const float* src, int64_t n, Half* dst) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i), bits);
  }
  for (; i < n; ++i) dst[i].bits = _cvtss_sh(src[i], _MM_FROUND_TO_NEAREST_INT);
}

#else

inline void widen(const Half* src, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; ++i) dst[i] = src[i];
}

inline void narrow(const float* src, int64_t n, Half* dst) {
  for (int64_t i = 0; i < n; ++i) dst[i] = Half(src[i]);
}

#endif

}  // namespace tt::cpu::TT_ISA
