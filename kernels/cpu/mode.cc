// mode: the most frequent value of each line.
#include <algorithm>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/sorter.h"

namespace tt::cpu {
namespace {

// The place where the line's most frequent value stands last; the smallest of equally frequent ones. Every NaN is a
// value of its own.
template <typename T>
int64_t most_frequent(const T* line, int64_t n, int64_t stride, std::vector<std::pair<SortKey<T>, int64_t>>& order) {
  order.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = {sort_key(line[i * stride]), i};
  std::sort(order.begin(), order.end());
  int64_t best = 0, longest = 0;
  for (int64_t i = 0, run = 0; i < n; ++i) {
    const auto& [key, place] = order[static_cast<size_t>(i)];
    const bool again = i > 0 && key == order[static_cast<size_t>(i - 1)].first && !is_nan(line[place * stride]);
    run = again ? run + 1 : 1;
    if (run > longest) longest = run, best = i;
  }
  return order[static_cast<size_t>(best)].second;
}

}  // namespace

void mode(const Tensor& input, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  (void)keepdim;  // the results' sizes say it; their elements are in the lines' order
  const Lines<1> lines({&input}, dim);
  with_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    lines.run([&](auto each) {
      std::vector<std::pair<SortKey<T>, int64_t>> order;
      each([&](const Nest<1>::Offsets& at, int64_t line) {
        const T* x = input.data_as<T>() + at[0];
        const int64_t place = most_frequent(x, lines.length(0), lines.stride(0), order);
        values.data_as<T>()[line] = x[place * lines.stride(0)];
        indices.data_as<int64_t>()[line] = place;
      });
    });
  });
}

}  // namespace tt::cpu
