#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {

Error index_out_of_range(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kIndex, absl::StrCat("index ", cell.values[0], " is out of bounds for dimension ",
                                               cell.values[1], " with size ", cell.values[2]));
}

}  // namespace tt::cuda
