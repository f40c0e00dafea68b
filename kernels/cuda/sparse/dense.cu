// Sparse to dense tensors and back: adds or reads parts of a dense tensor at indices, and finds the parts that are not
// 0.
#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/radix_sort.h"
#include "kernels/cuda/sort/sorted_rows.h"
#include "kernels/cuda/sparse/indices.h"

namespace tt::cuda {
namespace {

// out[position] += part, for parts sorted by position. The thread of the first of equal positions adds all of them, in
// the order of the entries.
template <typename T>
void add_parts(const KeyIndexPairs& sorted, const Tensor& values, int64_t width, const Tensor& out) {
  using C = SumType<T>;
  const int64_t *position = sorted.keys.data_as<int64_t>(), *order = sorted.indices.data_as<int64_t>();
  const int64_t n = sorted.keys.numel();
  const T* from = values.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), n * width, [=] TT_DEVICE(int64_t at) {
    const int64_t first = at / width, column = at % width;
    if (first > 0 && position[first - 1] == position[first]) return;
    C sum{};
    for (int64_t i = first; i < n && position[i] == position[first]; ++i) {
      sum = static_cast<C>(sum + convert<C>(from[order[i] * width + column]));
    }
    to[position[first] * width + column] = convert<T>(sum);
  });
}

}  // namespace

void sparse_scatter(const Tensor& indices, const Tensor& values, absl::Span<const int64_t> size, Tensor& out) {
  const Queue queue = queue_of(out);
  DeviceErrorCell* cell = open_index_cell(queue);
  const Tensor positions = checked_offsets(indices, size, cell);
  fill_with(out, Scalar(int64_t{0}));
  if (out.numel() == 0) return throw_reported_if_empty(out, positions, cell);
  const Tensor parts = contiguous(values);
  const KeyIndexPairs sorted =
      radix_sort(queue, {positions, iota(queue, positions.numel())}, bits_below(product_or_overflow(size)));
  with_any_element(out.dtype(),
                   [&]<typename T>(std::type_identity<T>) { add_parts<T>(sorted, parts, part_width(values), out); });
}

namespace {

template <typename T>
void take_parts(const Tensor& x, const Tensor& positions, int64_t width, const Tensor& out) {
  const int64_t* position = positions.data_as<int64_t>();
  const T* from = x.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(),
           [=] TT_DEVICE(int64_t i) { to[i] = from[position[i / width] * width + i % width]; });
}

}  // namespace

void sparse_gather(const Tensor& input, const Tensor& indices, Tensor& out) {
  const SizesView size = SizesView(input.sizes()).first(static_cast<size_t>(indices.size(0)));
  DeviceErrorCell* cell = open_index_cell(queue_of(out));
  const Tensor positions = checked_offsets(indices, size, cell);
  if (out.numel() == 0) return throw_reported_if_empty(out, positions, cell);
  const Tensor x = contiguous(input);
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) { take_parts<T>(x, positions, part_width(out), out); });
}

namespace {

// flags[i] = whether part i has an element that is not 0.
template <typename T>
void find_parts(const Tensor& x, int64_t width, const Tensor& flags) {
  const T* from = x.data_as<T>();
  Bool* flag = flags.data_as<Bool>();
  const Queue queue = queue_of(flags);
  if (width >= kLongRow) {
    return for_each_group(queue, flags.numel(), width, [=] TT_DEVICE(Group & group) {
      const T* part = from + group.index() * width;
      int found = 0;
      for (int64_t i = group.rank(); i < width; i += group.size()) found |= convert<Bool>(part[i]);
      found = group.reduce(found, Add());
      if (group.rank() == 0) flag[group.index()] = found > 0;
    });
  }
  for_each(queue, flags.numel(), [=] TT_DEVICE(int64_t at) {
    bool found = false;
    for (int64_t i = at * width; i < (at + 1) * width; ++i) found |= convert<Bool>(from[i]);
    flag[at] = found;
  });
}

void write_index(const Tensor& positions, int64_t stride, int64_t size, const Tensor& out, int64_t d) {
  const int64_t* from = positions.data_as<int64_t>();
  int64_t* to = out.data_as<int64_t>() + d * positions.numel();
  for_each(queue_of(out), positions.numel(), [=] TT_DEVICE(int64_t i) { to[i] = from[i] / stride % size; });
}

}  // namespace

void sparse_nonzero(const Tensor& input, int64_t sparse_dim, Tensor& out) {
  check_sparse_dim(input, sparse_dim);
  const Tensor x = contiguous(input);
  const SizesView size = SizesView(input.sizes()).first(static_cast<size_t>(sparse_dim));
  if (x.numel() == 0) {
    out = empty({sparse_dim, 0}, DType::kInt64, input.device());
    return;
  }
  const int64_t parts = product_or_overflow(size), width = x.numel() / parts;
  const Tensor flags = empty({parts}, DType::kBool, input.device());
  with_any_element(x.dtype(), [&]<typename T>(std::type_identity<T>) { find_parts<T>(x, width, flags); });
  const int64_t one_by_one = 1;
  const Tensor positions = offsets_of_true(flags, {&one_by_one, 1});
  out = empty({sparse_dim, positions.numel()}, DType::kInt64, input.device());
  if (positions.numel() == 0) return;
  int64_t stride = 1;
  for (int64_t d = sparse_dim; d-- > 0; stride *= input.size(d)) write_index(positions, stride, input.size(d), out, d);
}

}  // namespace tt::cuda
