// Operators that order the elements along a dimension.
#include "kernels/common/element.h"
#include "kernels/cuda/access.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sorted_lines.h"

namespace tt::cuda {

namespace {

// The first elements of each line in order, as many as lines of `values` are long.
template <typename T>
void write_sorted(const Tensor& input, const Lines& lines, const Tensor& places, int64_t dim, const Tensor& values,
                  const Tensor& indices) {
  const Lines out(values, dim);  // of indices, too
  const int64_t* sorted = places.data_as<int64_t>();
  const T* from = input.data_as<T>();
  T* to = values.data_as<T>();
  int64_t* where = indices.data_as<int64_t>();
  for_each(queue_of(values), values.numel(), [=] TT_DEVICE(int64_t i) {
    const int64_t line = i / out.length(), rank = i % out.length();
    const int64_t place = sorted[line * lines.length() + rank] % lines.length();
    const int64_t at = out.start(line) + rank * out.stride();
    to[at] = from[lines.start(line) + place * lines.stride()];
    where[at] = place;
  });
}

void sort_first(const Tensor& input, int64_t dim, bool descending, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const Lines lines(input, dim);
  const Tensor places = sorted_lines(input, lines, descending);
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    write_sorted<T>(input, lines, places, dim, values, indices);
  });
}

TT_FUNCTION bool is_nan_at(const Access& x, int64_t i) {
  bool nan = false;
  with_element_of(x.dtype, [&]<typename T>(std::type_identity<T>) { nan = is_nan(static_cast<const T*>(x.data)[i]); });
  return nan;
}

// The element of rank `rank` (from 0) of each line, or (`nan_wins`) its first NaN, and where it was. `values` and
// `indices` hold one element a line, in order.
template <typename T>
void write_ranked(const Tensor& input, const Lines& lines, const Tensor& places, bool nan_wins, int64_t rank,
                  const Tensor& values, const Tensor& indices) {
  const Access x(input);
  const int64_t* all_sorted = places.data_as<int64_t>();
  T* to = values.data_as<T>();
  int64_t* where = indices.data_as<int64_t>();
  for_each(queue_of(values), lines.count(), [=] TT_DEVICE(int64_t line) {
    const int64_t* sorted = all_sorted + line * lines.length();
    const int64_t last = lines.length() - 1;
    int64_t chosen = rank;
    if (nan_wins && is_nan_at(x, lines.offset(sorted[last]))) {
      int64_t from = 0;  // NaNs are the last ones
      for (chosen = last; from < chosen;) {
        const int64_t middle = (from + chosen) / 2;
        if (is_nan_at(x, lines.offset(sorted[middle]))) chosen = middle;
        else from = middle + 1;
      }
    }
    to[line] = static_cast<const T*>(x.data)[lines.offset(sorted[chosen])];
    where[line] = sorted[chosen] % lines.length();
  });
}

void take_ranked(const Tensor& input, int64_t dim, bool nan_wins, int64_t rank, const Tensor& values,
                 const Tensor& indices) {
  if (values.numel() == 0) return;
  const Lines lines(input, dim);
  const Tensor places = sorted_lines(input, lines, false);
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    write_ranked<T>(input, lines, places, nan_wins, rank, values, indices);
  });
}

}  // namespace

void sort(const Tensor& input, int64_t dim, bool descending, Tensor& values, Tensor& indices) {
  sort_first(input, dim, descending, values, indices);
}

void topk(const Tensor& input, int64_t, int64_t dim, bool largest, bool, Tensor& values, Tensor& indices) {
  sort_first(input, dim, largest, values, indices);
}

void kthvalue(const Tensor& input, int64_t k, int64_t dim, bool, Tensor& values, Tensor& indices) {
  take_ranked(input, dim, false, k - 1, values, indices);
}

void median_dim(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  take_ranked(input, dim, true, (Lines(input, dim).length() - 1) / 2, values, indices);
}

void median(const Tensor& input, Tensor& out) {
  const Tensor line = view_of(contiguous(input), Geometry{{input.numel()}, {1}, input.is_contiguous() ? input->offset : 0});
  const Tensor place = empty({}, DType::kInt64, input.device());
  take_ranked(line, 0, true, (input.numel() - 1) / 2, out, place);
}

}  // namespace tt::cuda
