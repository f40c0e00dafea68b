// searchsorted: the insertion points of values in sorted rows.
#include "kernels/common/sort/searchsorted.h"

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool right, Tensor& out) {
  if (input.numel() == 0) return;
  const DType dtype = promote(sorted_sequence.dtype(), input.dtype());
  const Tensor rows = contiguous_as(sorted_sequence, dtype), values = contiguous_as(input, dtype);
  const int64_t n = rows.size(-1), per_row = values_per_row(rows, values);
  with_element(dtype, [&]<typename T>(std::type_identity<T>) {
    parallel_for(values.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out.data_as<int64_t>()[i] =
            insertion_point(rows.data_as<T>() + i / per_row * n, n, values.data_as<T>()[i], right);
      }
    });
  });
}

}  // namespace tt::cpu
