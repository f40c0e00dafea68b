#include "kernels/cpu/iteration/fft_passes.h"

#include <string_view>

#include "kernels/cpu/iteration/block.h"

namespace tt::cpu {

#define TT_FFT_PASSES_OF(isa)            \
  namespace isa {                        \
  FftPasses<float> fft_passes_float();   \
  FftPasses<double> fft_passes_double(); \
  }
TT_FFT_PASSES_OF(baseline)
#ifdef TT_X86_64
TT_FFT_PASSES_OF(avx2)
TT_FFT_PASSES_OF(avx512)
#endif
#undef TT_FFT_PASSES_OF

template <>
const FftPasses<float>& fft_passes<float>() {
  static const FftPasses<float> passes = [] {
#ifdef TT_X86_64
    const std::string_view isa = blocks().isa;
    if (isa == "avx512") return avx512::fft_passes_float();
    if (isa == "avx2") return avx2::fft_passes_float();
#endif
    return baseline::fft_passes_float();
  }();
  return passes;
}

template <>
const FftPasses<double>& fft_passes<double>() {
  static const FftPasses<double> passes = [] {
#ifdef TT_X86_64
    const std::string_view isa = blocks().isa;
    if (isa == "avx512") return avx512::fft_passes_double();
    if (isa == "avx2") return avx2::fft_passes_double();
#endif
    return baseline::fft_passes_double();
  }();
  return passes;
}

}  // namespace tt::cpu
