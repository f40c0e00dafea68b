// mode: the most frequent value of each line.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sort/ranked_rows.h"

namespace tt::cuda {

namespace {

// A run of equal elements in a line's sorted order, which begins at position `first` of that order.
struct Run {
  int64_t first, length;
};
// Selects the longest run, and the first of equally long runs.
struct Longest {
  TT_FUNCTION Run operator()(const Run& a, const Run& b) const {
    return b.length > a.length || (b.length == a.length && b.first < a.first) ? b : a;
  }
};

// Returns the length of the run that starts at position `first` of a line's sorted order.
template <typename Key>
TT_FUNCTION int64_t run_length(const Key* keys, const int64_t* order, int64_t length, int64_t first) {
  int64_t from = first, to = length - 1;  // the last element of the run is in [from, to]
  while (from < to) {
    const int64_t middle = to - (to - from) / 2;
    if (keys[order[middle] % length] == keys[order[first] % length])
      from = middle;
    else
      to = middle - 1;
  }
  return from - first + 1;
}

// For each line, finds the position of the last occurrence of its most frequent value. If `nans`, the greatest key is
// NaN, and each NaN is a run of length 1.
template <typename Key>
void find_modes(const Queue& queue, const RowKeys& keys, const Tensor& order, int64_t length, bool nans,
                const Tensor& positions) {
  const Key* all_keys = keys.keys.data_as<Key>();
  const Key nan = static_cast<Key>(~Key{0} >> (8 * static_cast<int>(sizeof(Key)) - keys.bits));
  const int64_t* all_orders = order.data_as<int64_t>();
  int64_t* to = positions.data_as<int64_t>();
  for_each_group(queue, positions.numel(), length, [=] TT_DEVICE(Group & group) {
    const Key* line = all_keys + group.index() * length;
    const int64_t* sorted = all_orders + group.index() * length;
    Run best{length, 0};
    for (int64_t i = group.rank(); i < length; i += group.size()) {
      const Key key = line[sorted[i] % length];
      const bool alone = nans && key == nan;
      if (i > 0 && !alone && line[sorted[i - 1] % length] == key) continue;
      best = Longest()(best, {i, alone ? 1 : run_length(line, sorted, length, i)});
    }
    best = group.reduce(best, Longest());
    if (group.rank() == 0) to[group.index()] = sorted[best.first + best.length - 1] % length;
  });
}

}  // namespace

void mode(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  if (values.numel() == 0) return;
  const DimIterator lines(input, dim);
  const RowKeys keys = row_keys(input, lines, false);
  const Tensor order = sorted_rows(input, lines, false);
  const Tensor positions = empty({lines.count()}, DType::kInt64, input.device());
  with_key(keys, [&]<typename Key>(std::type_identity<Key>) {
    find_modes<Key>(queue_of(input), keys, order, lines.length(), is_floating(input.dtype()), positions);
  });
  gather_selected(input, lines, {positions, 1, 0}, values, indices);
}

}  // namespace tt::cuda
