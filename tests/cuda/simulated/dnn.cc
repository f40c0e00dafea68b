// Simulated devices have no convolution library, so the tests cover our own kernels.
#include "kernels/cuda/runtime/dnn.h"

#include "kernels/cuda/runtime/library_status.h"

namespace tt::cuda {

std::unique_ptr<Dnn> make_dnn() {
  record_library_status({"cuDNN", "", "simulated devices have none"});
  return nullptr;
}

}  // namespace tt::cuda
