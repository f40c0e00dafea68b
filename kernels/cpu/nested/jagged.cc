// Conversions between jagged and padded tensors, and reductions of sequences. The ragged dimension comes first.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "kernels/common/nested/sequence_reduction.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nested/sequences.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;  // about 10 us of copies
constexpr int64_t kColumns = 512;

// The bytes of an entry of dimension `dim`, for a contiguous tensor.
size_t entry_bytes(const Tensor& t, int64_t dim) {
  size_t bytes = item_size(t.dtype());
  for (int64_t d = dim + 1; d < t.dim(); ++d) bytes *= static_cast<size_t>(t.size(d));
  return bytes;
}

// Runs body(b) for each sequence; `bytes` are those of all sequences.
void for_each_sequence(const Sequences& sequences, size_t bytes, absl::FunctionRef<void(int64_t)> body) {
  const int64_t per_sequence = static_cast<int64_t>(bytes) / std::max<int64_t>(sequences.count(), 1);
  parallel_for(sequences.count(), kGrainBytes / std::max<int64_t>(per_sequence, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) body(b);
               });
}

void copy_bytes(char* to, const char* from, size_t n) {
  if (n > 0) std::memcpy(to, from, n);
}

// y[b] = the elements of sequence b, combined in numbers of type A; `empty` for a sequence without elements. Works on a
// block of columns at a time, whose results stay in the L1 cache.
template <typename Combine, typename A, typename T>
void reduce_sequences(const Sequences& sequences, const T* x, int64_t width, T empty, T* y) {
  if (width == 0) return;  // memory does not bound the number of entries
  for_each_sequence(sequences, static_cast<size_t>(sequences.tokens() * width) * sizeof(T), [&](int64_t b) {
    const T* const rows = x + sequences.begin(b) * width;
    const int64_t n = sequences.length(b);
    if (n == 0) return static_cast<void>(std::fill_n(y + b * width, width, empty));
    A results[kColumns];
    for (int64_t j = 0; j < width && !cancel_requested(); j += kColumns) {
      const int64_t columns = std::min(kColumns, width - j);
      for (int64_t c = 0; c < columns; ++c) results[c] = static_cast<A>(rows[j + c]);
      for (int64_t i = 1; i < n; ++i) {
        const T* const row = rows + i * width + j;
        for (int64_t c = 0; c < columns; ++c) results[c] = Combine::join(results[c], static_cast<A>(row[c]));
      }
      for (int64_t c = 0; c < columns; ++c) y[b * width + j + c] = static_cast<T>(results[c]);
    }
  });
}

}  // namespace

void jagged_to_padded(const Tensor& values, const Tensor& offsets, const Tensor& lengths, int64_t length,
                      Scalar padding, Tensor& out) {
  const Sequences sequences(offsets, lengths, values.size(0));
  const Tensor from = contiguous(values);
  fill(out, padding, out);
  const size_t row = entry_bytes(from, 0);
  for_each_sequence(sequences, static_cast<size_t>(values.size(0)) * row, [&](int64_t b) {
    copy_bytes(out.data_as<char>() + static_cast<size_t>(b * length) * row,
               from.data_as<char>() + static_cast<size_t>(sequences.begin(b)) * row,
               static_cast<size_t>(std::min(sequences.length(b), length)) * row);
  });
}

void padded_to_jagged(const Tensor& padded, const Tensor& offsets, const Tensor& lengths, int64_t total, Tensor& out) {
  const Sequences sequences(offsets, lengths, total);
  const Tensor from = contiguous(padded);
  const int64_t length = padded.size(1);
  const bool covered = sequences.tokens() == total && sequences.longest() <= length;
  if (!covered) fill(out, Scalar(0), out);
  const size_t row = entry_bytes(from, 1);
  for_each_sequence(sequences, static_cast<size_t>(total) * row, [&](int64_t b) {
    copy_bytes(out.data_as<char>() + static_cast<size_t>(sequences.begin(b)) * row,
               from.data_as<char>() + static_cast<size_t>(b * length) * row,
               static_cast<size_t>(std::min(sequences.length(b), length)) * row);
  });
}

void jagged_expand(const Tensor& input, const Tensor& offsets, const Tensor& lengths, int64_t total, Tensor& out) {
  const Sequences sequences(offsets, lengths, total);
  const Tensor from = contiguous(input);
  if (sequences.tokens() != total) fill(out, Scalar(0), out);
  const size_t row = entry_bytes(from, 0);
  if (row == 0) return;  // memory does not bound the number of entries
  for_each_sequence(sequences, static_cast<size_t>(total) * row, [&](int64_t b) {
    const char* const source = from.data_as<char>() + static_cast<size_t>(b) * row;
    char* to = out.data_as<char>() + static_cast<size_t>(sequences.begin(b)) * row;
    for (int64_t i = 0; i < sequences.length(b); ++i, to += row) copy_bytes(to, source, row);
  });
}

void jagged_reduce(const Tensor& values, const Tensor& offsets, const Tensor& lengths, std::string_view reduce,
                   Tensor& out) {
  const Sequences sequences(offsets, lengths, values.size(0));
  const auto run = [&]<typename T>(DType dtype, std::type_identity<T>) {
    const Tensor x = contiguous_as(values, dtype);
    const AccumulateBuffer y(out, dtype);
    const int64_t width = out.size(0) == 0 ? 0 : out.numel() / out.size(0);
    const T* const from = x.data_as<T>();
    T* const to = y.data<T>();
    const NumberLimits<T> limits = number_limits<T>(values.dtype());
    if (reduce == "sum") reduce_sequences<SumOfSequence, SequenceTotal<T>>(sequences, from, width, T(0), to);
    if (reduce == "amax") reduce_sequences<LargestOfSequence, T>(sequences, from, width, limits.least, to);
    if (reduce == "amin") reduce_sequences<SmallestOfSequence, T>(sequences, from, width, limits.largest, to);
    y.copy_to_output();
  };
  if (is_floating(values.dtype())) {
    const DType dtype = accumulate_type(values.dtype());
    return with_real(dtype, [&]<typename T>(std::type_identity<T> type) { run(dtype, type); });
  }
  check(ErrorKind::kNotImplemented, is_integral(values.dtype()) && values.dtype() != DType::kUInt64,
        "not implemented for ", name(values.dtype()));
  run(DType::kInt64, std::type_identity<int64_t>());
}

}  // namespace tt::cpu
