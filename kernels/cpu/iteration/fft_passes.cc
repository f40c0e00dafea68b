#include "kernels/cpu/iteration/fft_passes.h"

#include <string_view>

#include "kernels/cpu/iteration/block.h"
#include "kernels/cpu/iteration/instruction_sets.h"

namespace tt::cpu {

#define TT_FFT_PASSES_OF(isa)            \
  namespace isa {                        \
  FftPasses<float> fft_passes_float();   \
  FftPasses<double> fft_passes_double(); \
  }
TT_FFT_PASSES_OF(baseline)
#if TT_COMPILE_AVX2
TT_FFT_PASSES_OF(avx2)
#endif
#if TT_COMPILE_AVX512
TT_FFT_PASSES_OF(avx512)
#endif
#undef TT_FFT_PASSES_OF

template <>
const FftPasses<float>& fft_passes<float>() {
  static const FftPasses<float> passes = [] {
    [[maybe_unused]] const std::string_view isa = blocks().isa;
#if TT_COMPILE_AVX512
    if (isa == "avx512") return avx512::fft_passes_float();
#endif
#if TT_COMPILE_AVX2
    if (isa == "avx2") return avx2::fft_passes_float();
#endif
    return baseline::fft_passes_float();
  }();
  return passes;
}

template <>
const FftPasses<double>& fft_passes<double>() {
  static const FftPasses<double> passes = [] {
    [[maybe_unused]] const std::string_view isa = blocks().isa;
#if TT_COMPILE_AVX512
    if (isa == "avx512") return avx512::fft_passes_double();
#endif
#if TT_COMPILE_AVX2
    if (isa == "avx2") return avx2::fft_passes_double();
#endif
    return baseline::fft_passes_double();
  }();
  return passes;
}

}  // namespace tt::cpu
