// mode: the most frequent value of each line (one-dimensional slice along a dimension).
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/dim_iterator.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/sorter.h"

namespace tt::cpu {
namespace {

// Returns the last index of the line's most frequent value, or of the smallest such value. Each NaN counts as a
// separate value.
template <typename T, typename K>
int64_t most_frequent(const T* line, int64_t n, int64_t stride, const K* order) {
  int64_t best = 0, longest = 0;
  for (int64_t i = 0, run = 0; i < n; ++i) {
    const bool again = i > 0 && lower_bound_of_key(order[i]) == lower_bound_of_key(order[i - 1]) &&
                       !is_nan(line[index_of(order[i]) * stride]);
    run = again ? run + 1 : 1;
    if (run > longest) longest = run, best = i;
  }
  return index_of(order[best]);
}

}  // namespace

void mode(const Tensor& input, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  (void)keepdim;  // affects only the results' sizes, not their elements
  const DimIterator<1> lines({&input}, dim);
  with_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    KeyBuffers<T> buffers(lines.count(), lines.length(0));
    lines.run([&](auto each) {
      RowSorter<T> sorter = buffers.make_sorter();
      each([&](const StridedLoop<1>::Offsets& at, int64_t line) {
        const T* x = input.data_as<T>() + at[0];
        const int64_t n = lines.length(0), stride = lines.stride(0);
        const int64_t index =
            sorter.sort(x, stride, n, false, [&](const auto* order) { return most_frequent(x, n, stride, order); });
        values.data_as<T>()[line] = x[index * lines.stride(0)];
        indices.data_as<int64_t>()[line] = index;
      });
    });
  });
}

}  // namespace tt::cpu
