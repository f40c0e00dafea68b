// Simulated devices have no convolution library, so the tests cover our own kernels.
#include "kernels/cuda/runtime/dnn.h"

#include "kernels/cuda/runtime/library_notes.h"

namespace tt::cuda {

std::unique_ptr<Dnn> make_dnn() {
  note_library({"cuDNN", "", "simulated devices have none"});
  return nullptr;
}

}  // namespace tt::cuda
