#include "kernels/cuda/runtime/blas.h"

namespace tt::cuda {

Blas& blas() {
  static const std::unique_ptr<Blas> blas = make_blas();  // if make_blas() throws, the next call retries
  return *blas;
}

}  // namespace tt::cuda
