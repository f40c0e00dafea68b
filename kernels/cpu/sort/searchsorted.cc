// searchsorted: the insertion points of values in sorted rows.
#include "kernels/common/sort/searchsorted.h"

#include <algorithm>

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

// to[i] = the insertion point of values[i], as insertion_point() returns it for sorted rows. All searches take the same
// number of steps, so that several advance together, without branches.
template <typename T>
TT_CLONES void find_insertion_points(const T* row, int64_t n, const T* values, int64_t count, bool right, int64_t* to) {
  constexpr int64_t kTogether = 32;
  const auto is_before = [right](T element, T value) __attribute__((always_inline)) {
    return right ? !is_less(value, element) : is_less(element, value);
  };
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t some = std::min(kTogether, count - first);
    int64_t at[kTogether] = {};
    T value[kTogether] = {};
    std::copy_n(values + first, some, value);
    int64_t rest = n;  // elements from `at` on that are not compared yet
    while (rest > 1) {
      const int64_t half = rest / 2;
      for (int64_t i = 0; i < kTogether; ++i) at[i] += is_before(row[at[i] + half - 1], value[i]) ? half : 0;
      rest -= half;
    }
    for (int64_t i = 0; i < some; ++i) to[first + i] = at[i] + (rest > 0 && is_before(row[at[i]], value[i]));
  }
}

}  // namespace

void searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool right, Tensor& out) {
  if (input.numel() == 0) return;
  const DType dtype = promote(sorted_sequence.dtype(), input.dtype());
  const Tensor rows = contiguous_as(sorted_sequence, dtype), values = contiguous_as(input, dtype);
  const int64_t n = rows.size(-1), per_row = values_per_row(rows, values);
  with_element(dtype, [&]<typename T>(std::type_identity<T>) {
    parallel_for(values.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin, count; i < end; i += count) {
        const int64_t row = i / per_row;
        count = std::min(end, (row + 1) * per_row) - i;
        find_insertion_points(rows.data_as<T>() + row * n, n, values.data_as<T>() + i, count, right,
                              out.data_as<int64_t>() + i);
      }
    });
  });
}

}  // namespace tt::cpu
