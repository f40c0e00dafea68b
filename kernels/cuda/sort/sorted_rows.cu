#include "kernels/cuda/sort/sorted_rows.h"

#include <bit>

#include "kernels/common/sort/sort_key.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/radix_sort.h"

namespace tt::cuda {

namespace {

// Number of significant low bits of short_key().
template <typename T>
constexpr int key_bits() {
  if constexpr (std::is_same_v<T, Bool>)
    return 1;
  else if constexpr (std::is_same_v<T, Half>)
    return 19;
  else
    return 8 * sizeof(T);
}

// sort_key() without the bits that are equal for all elements of T.
template <typename T>
TT_FUNCTION uint64_t short_key(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return sort_key(value) >> (32 - key_bits<T>());
  } else if constexpr (std::is_same_v<T, int8_t> || std::is_same_v<T, int16_t>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<Unsigned>(static_cast<Unsigned>(value) ^ (1u << (key_bits<T>() - 1)));
  } else {
    return sort_key(value);
  }
}

int bits_of(int64_t most) { return std::bit_width(static_cast<uint64_t>(most)); }

int key_bits_of(DType dtype) {
  int bits = 0;
  with_element(dtype, [&]<typename T>(std::type_identity<T>) { bits = key_bits<T>(); });
  return bits;
}
DType key_type(int bits) { return bits <= 32 ? DType::kInt32 : DType::kInt64; }

// Writes, for each element, its key and, from bit `row_bit` on, the index of its row. If `row_bit` is 64, writes no
// row index.
template <typename Key>
void make_keys(const Tensor& input, const DimIterator& rows, int bits, int row_bit, bool descending,
               const Tensor& out) {
  const Access x(input);
  const uint64_t flip = descending ? ~uint64_t{0} >> (64 - bits) : 0;
  Key* keys = out.data_as<Key>();
  for_each(queue_of(input), out.numel(), [=] TT_DEVICE(int64_t i) {
    uint64_t key = 0;
    const int64_t offset = rows.offset(i);
    with_element_of(x.dtype, [&]<typename T>(std::type_identity<T>) {
      key = short_key(static_cast<const T*>(x.data)[offset]) ^ flip;
    });
    if (row_bit < 64) key |= static_cast<uint64_t>(i / rows.length()) << row_bit;
    keys[i] = static_cast<Key>(key);
  });
}

Tensor make_keys(const Tensor& input, const DimIterator& rows, int bits, int row_bit, bool descending, DType type) {
  Tensor keys = empty({rows.count() * rows.length()}, type, input.device());
  type == DType::kInt32 ? make_keys<uint32_t>(input, rows, bits, row_bit, descending, keys)
                        : make_keys<uint64_t>(input, rows, bits, row_bit, descending, keys);
  return keys;
}

// Writes the row indices of `positions` as keys.
void make_row_index_keys(const Queue& queue, const DimIterator& rows, const KeyIndexPairs& items) {
  const int64_t* positions = items.indices.data_as<int64_t>();
  int64_t* keys = items.keys.data_as<int64_t>();
  for_each(queue, items.keys.numel(), [=] TT_DEVICE(int64_t i) { keys[i] = positions[i] / rows.length(); });
}

}  // namespace

Tensor iota(const Queue& queue, int64_t n) {
  Tensor positions = empty({n}, DType::kInt64, queue.device());
  int64_t* to = positions.data_as<int64_t>();
  for_each(queue, n, [=] TT_DEVICE(int64_t i) { to[i] = i; });
  return positions;
}

RowKeys row_keys(const Tensor& input, const DimIterator& rows, bool descending) {
  const int bits = key_bits_of(input.dtype());
  return {make_keys(input, rows, bits, 64, descending, key_type(bits)), bits};
}

// All rows are sorted together. If the row index and the key fit in one integer, one sort suffices; otherwise elements
// are sorted by key and then, with a stable sort, by row.
Tensor sorted_rows(const Tensor& input, const DimIterator& rows, bool descending) {
  const Queue queue = queue_of(input);
  const int bits = key_bits_of(input.dtype()), row_bits = bits_of(rows.count() - 1), together = bits + row_bits;
  const bool fits = together <= 64;
  const int row_bit = fits && row_bits > 0 ? bits : 64;
  const Tensor keys = make_keys(input, rows, bits, row_bit, descending, key_type(together));
  KeyIndexPairs items = radix_sort(queue, {keys, iota(queue, keys.numel())}, fits ? together : bits);
  if (fits) return items.indices;
  make_row_index_keys(queue, rows, items);
  return radix_sort(queue, items, row_bits).indices;
}

}  // namespace tt::cuda
