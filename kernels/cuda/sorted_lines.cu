#include "kernels/cuda/sorted_lines.h"

#include <bit>

#include "kernels/common/sort_key.h"
#include "kernels/cuda/access.h"
#include "kernels/cuda/radix_sort.h"

namespace tt::cuda {

namespace {

// How many of the low bits of short_key() tell elements apart.
template <typename T>
constexpr int key_bits() {
  if constexpr (std::is_same_v<T, Bool>) return 1;
  else if constexpr (std::is_same_v<T, Half>) return 19;
  else return 8 * sizeof(T);
}

// sort_key() without the bits that are the same for all elements of T.
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

// Of each element its key, above it (from bit `line_bit` on; 64: not) the number of its line, and its own number.
template <typename Key>
void make_keys(const Tensor& input, const Lines& lines, int bits, int line_bit, bool descending,
               const KeyedPlaces& items) {
  const Access x(input);
  const uint64_t flip = descending ? ~uint64_t{0} >> (64 - bits) : 0;
  Key* keys = items.keys.data_as<Key>();
  int64_t* places = items.places.data_as<int64_t>();
  for_each(queue_of(input), items.keys.numel(), [=] TT_DEVICE(int64_t i) {
    uint64_t key = 0;
    const int64_t offset = lines.offset(i);
    with_element_of(x.dtype, [&]<typename T>(std::type_identity<T>) {
      key = short_key(static_cast<const T*>(x.data)[offset]) ^ flip;
    });
    if (line_bit < 64) key |= static_cast<uint64_t>(i / lines.length()) << line_bit;
    keys[i] = static_cast<Key>(key);
    places[i] = i;
  });
}

// The lines of `places`, as keys.
void make_line_keys(const Queue& queue, const Lines& lines, const KeyedPlaces& items) {
  const int64_t* places = items.places.data_as<int64_t>();
  int64_t* keys = items.keys.data_as<int64_t>();
  for_each(queue, items.keys.numel(), [=] TT_DEVICE(int64_t i) { keys[i] = places[i] / lines.length(); });
}

}  // namespace

// All lines are sorted as one, by line and then by key: as one integer where both fit, else by key, then by line.
Tensor sorted_lines(const Tensor& input, const Lines& lines, bool descending) {
  const Queue queue = queue_of(input);
  int bits = 0;
  with_element(input.dtype(), [&]<typename T>(std::type_identity<T>) { bits = key_bits<T>(); });
  const int line_bits = bits_of(lines.count() - 1), together = bits + line_bits;
  const DType key_type = together <= 32 ? DType::kInt32 : DType::kInt64;
  const int64_t n = lines.count() * lines.length();
  KeyedPlaces items{empty({n}, key_type, input.device()), empty({n}, DType::kInt64, input.device())};
  const int line_bit = together <= 64 && line_bits > 0 ? bits : 64;
  key_type == DType::kInt32 ? make_keys<uint32_t>(input, lines, bits, line_bit, descending, items)
                            : make_keys<uint64_t>(input, lines, bits, line_bit, descending, items);
  items = radix_sort(queue, items, together <= 64 ? together : bits);
  if (together <= 64) return items.places;
  make_line_keys(queue, lines, items);
  return radix_sort(queue, items, line_bits).places;
}

}  // namespace tt::cuda
