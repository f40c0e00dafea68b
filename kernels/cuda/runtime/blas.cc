#include "kernels/cuda/runtime/blas.h"

namespace tt::cuda {

Blas& blas() {
  static const std::unique_ptr<Blas> blas = make_blas();  // where it throws, the next call tries again
  return *blas;
}

}  // namespace tt::cuda
