// Conversions between jagged and padded tensors, and reductions of sequences. The ragged dimension comes first.
#include "kernels/common/nested/sequence_reduction.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/index_divider.h"
#include "kernels/cuda/nested/sequences.h"

namespace tt::cuda {
namespace {

// The number of elements of an entry of the first dimension. Requires that there is an element.
int64_t elements_of_entry(const Tensor& t) { return t.numel() / t.size(0); }

template <typename T>
void pad(const Queue& queue, SequenceTable s, const T* from, const T* padding, int64_t length, int64_t width, int64_t n,
         T* to) {
  const IndexDivider by_width(width, n), by_length(length, n);
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const int64_t row = by_width.quotient(i), b = by_length.quotient(row), at = row - b * length;
    to[i] = at < s.lengths[b] ? from[(s.begins[b] + at) * width + i - row * width] : *padding;
  });
}

// Writes the entries of each sequence's row of `from`, (sequences, length, width), and zeros after its end and between
// the sequences.
template <typename T>
void unpad(const Queue& queue, SequenceTable s, const T* from, int64_t length, int64_t width, int64_t n, T* to) {
  const IndexDivider by_width(width, n);
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const int64_t token = by_width.quotient(i), b = s.last_before(token);
    const int64_t at = b < 0 ? 0 : token - s.begins[b];
    to[i] = s.contains(b, token) && at < length ? from[(b * length + at) * width + i - token * width] : T(0);
  });
}

// Writes row b of `from` for each entry of sequence b.
template <typename T>
void repeat(const Queue& queue, SequenceTable s, const T* from, int64_t width, int64_t n, T* to) {
  const IndexDivider by_width(width, n);
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const int64_t token = by_width.quotient(i), b = s.last_before(token);
    to[i] = s.contains(b, token) ? from[b * width + i - token * width] : T(0);
  });
}

// One thread per result: adjacent threads read adjacent columns.
template <typename Combine, typename A, typename T>
void reduce_by_threads(const Queue& queue, SequenceTable s, const T* x, int64_t width, T empty, T* y) {
  const IndexDivider by_width(width, s.count * width);
  for_each(queue, s.count * width, [=] TT_DEVICE(int64_t i) {
    const int64_t b = by_width.quotient(i), n = s.lengths[b];
    const T* at = x + s.begins[b] * width + i - b * width;
    A total = Combine::template start<A>();
    for (int64_t k = 0; k < n; ++k, at += width) total = Combine::join(total, static_cast<A>(*at));
    y[i] = n == 0 ? empty : static_cast<T>(total);
  });
}

template <typename Combine>
struct Join {
  template <typename A>
  TT_FUNCTION A operator()(A a, A b) const {
    return Combine::join(a, b);
  }
};

// One group per result, for long sequences of few columns.
template <typename Combine, typename A, typename T>
void reduce_by_groups(const Queue& queue, SequenceTable s, const T* x, int64_t width, T empty, T* y) {
  const int64_t mean = s.total / s.count;
  for_each_group(queue, s.count * width, mean, [=] TT_DEVICE(Group & group) {
    const int64_t b = group.index() / width, n = s.lengths[b];
    const T* const column = x + s.begins[b] * width + group.index() - b * width;
    A total = Combine::template start<A>();
    for (int64_t k = group.rank(); k < n; k += group.size()) {
      total = Combine::join(total, static_cast<A>(column[k * width]));
    }
    total = group.reduce(total, Join<Combine>());
    if (group.rank() == 0) y[group.index()] = n == 0 ? empty : static_cast<T>(total);
  });
}

// y[b] = the elements of sequence b, combined in numbers of type A; `empty` for a sequence without elements.
template <typename Combine, typename A, typename T>
void reduce_sequences(const Queue& queue, SequenceTable s, const T* x, int64_t width, T empty, T* y) {
  constexpr int64_t kShort = 64, kEnoughThreads = 1 << 14;
  const bool is_wide = width >= 32 && s.count * width >= kEnoughThreads;
  if (is_wide || s.total / s.count <= kShort) return reduce_by_threads<Combine, A>(queue, s, x, width, empty, y);
  reduce_by_groups<Combine, A>(queue, s, x, width, empty, y);
}

template <typename T>
void reduce_as(DType dtype, const Tensor& values, const Sequences& sequences, std::string_view reduce, Tensor& out) {
  const Tensor x = contiguous_as(values, dtype);
  const AccumulateBuffer y(out, dtype);
  const SequenceTable table = sequences.table();
  const Queue queue = queue_of(out);
  const T* const from = x.data_as<T>();
  T* const to = y.data<T>();
  const int64_t width = elements_of_entry(out);
  const NumberLimits<T> limits = number_limits<T>(values.dtype());
  if (reduce == "sum") reduce_sequences<SumOfSequence, SequenceTotal<T>>(queue, table, from, width, T(0), to);
  if (reduce == "amax") reduce_sequences<LargestOfSequence, T>(queue, table, from, width, limits.least, to);
  if (reduce == "amin") reduce_sequences<SmallestOfSequence, T>(queue, table, from, width, limits.largest, to);
  y.copy_to_output();
}

}  // namespace

void jagged_to_padded(const Tensor& values, const Tensor& offsets, const Tensor& lengths, int64_t length,
                      Scalar padding, Tensor& out) {
  const Sequences sequences(offsets, lengths, values.size(0));
  Tensor pad_with = empty({}, out.dtype(), out.device());
  fill(pad_with, padding, pad_with);
  if (out.numel() == 0) return;
  const Tensor from = contiguous(values);
  with_bits(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    pad(queue_of(out), sequences.table(), from.data_as<T>(), pad_with.data_as<T>(), length,
        elements_of_entry(out) / length, out.numel(), out.data_as<T>());
  });
}

void padded_to_jagged(const Tensor& padded, const Tensor& offsets, const Tensor& lengths, int64_t total, Tensor& out) {
  const Sequences sequences(offsets, lengths, total);
  if (out.numel() == 0) return;
  const Tensor from = contiguous(padded);
  with_bits(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    unpad(queue_of(out), sequences.table(), from.data_as<T>(), padded.size(1), elements_of_entry(out), out.numel(),
          out.data_as<T>());
  });
}

void jagged_expand(const Tensor& input, const Tensor& offsets, const Tensor& lengths, int64_t total, Tensor& out) {
  const Sequences sequences(offsets, lengths, total);
  if (out.numel() == 0) return;
  const Tensor from = contiguous(input);
  with_bits(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    repeat(queue_of(out), sequences.table(), from.data_as<T>(), elements_of_entry(out), out.numel(), out.data_as<T>());
  });
}

void jagged_reduce(const Tensor& values, const Tensor& offsets, const Tensor& lengths, std::string_view reduce,
                   Tensor& out) {
  const Sequences sequences(offsets, lengths, values.size(0));
  const DType dtype = is_floating(values.dtype()) ? accumulate_type(values.dtype()) : DType::kInt64;
  const bool is_number =
      is_floating(values.dtype()) || (is_integral(values.dtype()) && values.dtype() != DType::kUInt64);
  check(ErrorKind::kNotImplemented, is_number, "not implemented for ", name(values.dtype()));
  if (out.numel() == 0) return;
  if (dtype == DType::kInt64) return reduce_as<int64_t>(dtype, values, sequences, reduce, out);
  with_real(dtype, [&]<typename T>(std::type_identity<T>) { reduce_as<T>(dtype, values, sequences, reduce, out); });
}

}  // namespace tt::cuda
