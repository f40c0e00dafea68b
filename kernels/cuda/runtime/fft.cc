#include "kernels/cuda/runtime/fft.h"

namespace tt::cuda {

Fft* fft() {
  static const std::unique_ptr<Fft> fft = make_fft();
  return fft.get();
}

}  // namespace tt::cuda
