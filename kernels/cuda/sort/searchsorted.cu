// searchsorted: one binary search per value.
#include "kernels/common/sort/searchsorted.h"

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"

namespace tt::cuda {

namespace {

template <typename T>
void search(const Tensor& rows, const Tensor& values, bool right, const Tensor& out) {
  const int64_t n = rows.size(-1), per_row = values_per_row(rows, values);
  const T *row = rows.data_as<T>(), *value = values.data_as<T>();
  int64_t* to = out.data_as<int64_t>();
  for_each(queue_of(out), values.numel(),
           [=] TT_DEVICE(int64_t i) { to[i] = insertion_point(row + i / per_row * n, n, value[i], right); });
}

}  // namespace

void searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool right, Tensor& out) {
  if (input.numel() == 0) return;
  const DType dtype = promote(sorted_sequence.dtype(), input.dtype());
  const Tensor rows = contiguous_as(sorted_sequence, dtype), values = contiguous_as(input, dtype);
  with_element(dtype, [&]<typename T>(std::type_identity<T>) { search<T>(rows, values, right, out); });
}

}  // namespace tt::cuda
