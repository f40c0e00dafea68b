// No library of convolutions on simulated devices: our own kernels are what is tested.
#include "kernels/cuda/runtime/dnn.h"

#include "kernels/cuda/runtime/library_notes.h"

namespace tt::cuda {

std::unique_ptr<Dnn> make_dnn() {
  note_library({"cuDNN", "", "simulated devices have none"});
  return nullptr;
}

}  // namespace tt::cuda
