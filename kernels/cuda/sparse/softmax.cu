// Softmax over the entries of a sparse tensor that have the same group.
#include <limits>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/launch/radix_sort.h"
#include "kernels/cuda/sort/sorted_rows.h"
#include "kernels/cuda/sparse/indices.h"

namespace tt::cuda {
namespace {

template <typename C>
TT_FUNCTION C larger(C a, C b) {
  return a < b ? b : a;
}
struct Larger {
  template <typename C>
  TT_FUNCTION C operator()(C a, C b) const {
    return larger(a, b);
  }
};

// Entries sorted by group, each a row of `width` elements.
template <typename T>
struct SortedEntries {
  using C = AccumulateType<T>;
  const int64_t *group, *order;
  int64_t n, width;
  const T* x;
  T* out;
  bool log;

  TT_DEVICE C at(int64_t place, int64_t column) const { return convert<C>(x[order[place] * width + column]); }
  TT_DEVICE void store(int64_t place, int64_t column, C most, C sum) const {
    const C shifted = at(place, column) - most;
    out[order[place] * width + column] = convert<T>(log ? shifted - math::log(sum) : math::exp(shifted) / sum);
  }
};

// The thread of the first entry of a group computes a column of the group.
template <typename T>
void softmax_of_short_groups(const Queue& queue, const SortedEntries<T>& entries) {
  using C = AccumulateType<T>;
  for_each(queue, entries.n * entries.width, [=] TT_DEVICE(int64_t i) {
    const int64_t begin = i / entries.width, column = i % entries.width, group = entries.group[begin];
    if (begin > 0 && entries.group[begin - 1] == group) return;
    C most = -std::numeric_limits<C>::infinity(), sum = 0;
    int64_t end = begin;
    for (; end < entries.n && entries.group[end] == group; ++end) most = larger(most, entries.at(end, column));
    for (int64_t p = begin; p < end; ++p) sum += math::exp(entries.at(p, column) - most);
    for (int64_t p = begin; p < end; ++p) entries.store(p, column, most, sum);
  });
}

// The threads of a group of threads share a column of a group of entries.
template <typename T>
void softmax_of_long_groups(const Queue& queue, const SortedEntries<T>& entries, int64_t groups) {
  using C = AccumulateType<T>;
  for_each_group(queue, groups * entries.width, entries.n / groups, [=] TT_DEVICE(Group & threads) {
    const int64_t group = threads.index() / entries.width, column = threads.index() % entries.width;
    const int64_t begin = insertion_point(entries.group, entries.n, group, false) + threads.rank();
    const int64_t end = insertion_point(entries.group, entries.n, group, true), step = threads.size();
    C most = -std::numeric_limits<C>::infinity(), sum = 0;
    for (int64_t p = begin; p < end; p += step) most = larger(most, entries.at(p, column));
    most = threads.reduce(most, Larger());
    for (int64_t p = begin; p < end; p += step) sum += math::exp(entries.at(p, column) - most);
    sum = threads.reduce(sum, Add());
    for (int64_t p = begin; p < end; p += step) entries.store(p, column, most, sum);
  });
}

}  // namespace

void sparse_softmax(const Tensor& values, const Tensor& group, int64_t groups, bool log, Tensor& out) {
  DeviceErrorCell* cell = open_index_cell(queue_of(group));
  const Tensor checked = checked_positions(group, groups, cell);
  if (out.numel() == 0) return throw_reported_if_empty(out, checked, cell);
  const Queue queue = queue_of(out);
  const Tensor x = contiguous(values);
  const int64_t n = checked.numel(), width = out.numel() / n;
  const KeyIndexPairs sorted = radix_sort(queue, {checked, iota(queue, n)}, bits_below(groups));
  with_floating(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const SortedEntries<T> entries{sorted.keys.data_as<int64_t>(),
                                   sorted.indices.data_as<int64_t>(),
                                   n,
                                   width,
                                   x.data_as<T>(),
                                   out.data_as<T>(),
                                   log};
    if (width < 16 && groups <= n / kLongRow) return softmax_of_long_groups(queue, entries, groups);
    softmax_of_short_groups(queue, entries);
  });
}

}  // namespace tt::cuda
