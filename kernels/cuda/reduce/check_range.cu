#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/common/math/value_ranges.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/device_error.h"
#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {
namespace {

Error outside(const DeviceErrorCell& cell) { return Error(ErrorKind::kRuntime, kValueRanges[cell.values[0]].message); }

// A function, because a lambda for the device cannot be defined inside of a generic lambda.
template <typename T>
void report_outside(const Queue& queue, const Tensor& values, int64_t number, DeviceErrorCell* cell) {
  const T* x = values.data_as<T>();
  const double low = kValueRanges[number].low, high = kValueRanges[number].high;
  for_each(queue, values.numel(), [=] TT_DEVICE(int64_t i) {
    if (!(x[i] >= low && x[i] <= high)) report_error(cell, number, 0, 0);
  });
}

}  // namespace

void check_range(const Tensor& input, std::string_view range, Tensor& out) {
  const int64_t number = value_range(range);
  const Queue queue = queue_of(input);
  const Tensor values = contiguous_as(input, input.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
  DeviceErrorCell* cell = open_error_cell(queue, &outside);
  with_real(values.dtype(),
            [&]<typename T>(std::type_identity<T>) { report_outside<T>(queue, values, number, cell); });
  fill_zeros(queue, out);
}

}  // namespace tt::cuda
