// mode: the most frequent value of each line.
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/dim_iterator.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/sorter.h"

namespace tt::cpu {
namespace {

// The place where the line's most frequent value stands last; the smallest of equally frequent ones. Every NaN is a
// value of its own.
template <typename T, typename K>
int64_t most_frequent(const T* line, int64_t n, int64_t stride, const K* order) {
  int64_t best = 0, longest = 0;
  for (int64_t i = 0, run = 0; i < n; ++i) {
    const bool again =
        i > 0 && first_of_key(order[i]) == first_of_key(order[i - 1]) && !is_nan(line[place_of(order[i]) * stride]);
    run = again ? run + 1 : 1;
    if (run > longest) longest = run, best = i;
  }
  return place_of(order[best]);
}

}  // namespace

void mode(const Tensor& input, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  (void)keepdim;  // the results' sizes say it; their elements are in the lines' order
  const DimIterator<1> lines({&input}, dim);
  with_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    KeyRoom<T> room(lines.count(), lines.length(0));
    lines.run([&](auto each) {
      RowSorter<T> sorter = room.take();
      each([&](const StridedLoop<1>::Offsets& at, int64_t line) {
        const T* x = input.data_as<T>() + at[0];
        const int64_t n = lines.length(0), stride = lines.stride(0);
        const int64_t place =
            sorter.sort(x, stride, n, false, [&](const auto* order) { return most_frequent(x, n, stride, order); });
        values.data_as<T>()[line] = x[place * lines.stride(0)];
        indices.data_as<int64_t>()[line] = place;
      });
    });
  });
}

}  // namespace tt::cpu
