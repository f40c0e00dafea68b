#include "kernels/cuda/runtime/dnn.h"

namespace tt::cuda {

Dnn* dnn() {
  static const std::unique_ptr<Dnn> dnn = make_dnn();
  return dnn.get();
}

}  // namespace tt::cuda
