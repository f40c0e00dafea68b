// Targets: the target classes of a loss.
#pragma once

#include "kernels/common/nn/likelihoods.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {

inline Error target_out_of_bounds(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kIndex, absl::StrCat("Target ", cell.values[0], " is out of bounds."));
}

// Target classes, checked when they are read. `target` points to contiguous int64 elements.
struct Targets {
  ClassShape shape;
  const int64_t* target;
  int64_t ignore;
  DeviceErrorCell* cell;

  // Returns -1 if the target is ignored or out of bounds.
  TT_DEVICE int64_t at(int64_t i) const {
    const int64_t t = target[i];
    if (t == ignore && ignore != kNoTargetIgnored) return -1;
    if (t >= 0 && t < shape.classes) return t;
    report_error(cell, t, 0, shape.classes);
    return -1;
  }
};

inline Targets targets_of(const Queue& queue, SizesView sizes, const Tensor& target, const Tensor& weight,
                          int64_t ignore) {
  return {ClassShape(sizes, target, weight), target.data_as<int64_t>(), ignore,
          open_error_cell(queue, &target_out_of_bounds)};
}

}  // namespace tt::cuda
