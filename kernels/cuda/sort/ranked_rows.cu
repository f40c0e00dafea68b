#include "kernels/cuda/sort/ranked_rows.h"

#include "kernels/common/iteration/element.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/launch/atomic.h"

namespace tt::cuda {

namespace {

// The number of keys with values 0, 1 and 2 of a two-bit digit. The number of keys with value 3 is not needed.
struct DigitCounts {
  int64_t of[3];
};
struct AddCounts {
  TT_FUNCTION DigitCounts operator()(const DigitCounts& a, const DigitCounts& b) const {
    return {{a.of[0] + b.of[0], a.of[1] + b.of[1], a.of[2] + b.of[2]}};
  }
};

// Counts the values of the two bits at `shift`, over the `keys` whose higher bits equal those of `prefix`.
template <typename Key>
TT_DEVICE DigitCounts count_digits(Group& group, const Key* keys, int64_t n, Key prefix, int shift) {
  DigitCounts counts{};
  const Key known = shift + 2 < static_cast<int>(8 * sizeof(Key)) ? static_cast<Key>(~Key{0} << (shift + 2)) : Key{0};
  for (int64_t i = group.rank(); i < n; i += group.size()) {
    const Key digit = (keys[i] & known) == prefix ? (keys[i] >> shift) & 3 : 3;
    counts.of[0] += digit == 0;
    counts.of[1] += digit == 1;
    counts.of[2] += digit == 2;
  }
  return group.reduce(counts, AddCounts());
}

// Returns the key at *rank in sorted order. Sets *rank to the rank among the keys equal to it.
template <typename Key>
TT_DEVICE Key find_key(Group& group, const Key* keys, int64_t n, int bits, int64_t* rank) {
  Key prefix = 0;
  for (int shift = (bits - 1) / 2 * 2; shift >= 0; shift -= 2) {
    const DigitCounts counts = count_digits(group, keys, n, prefix, shift);
    Key digit = 0;
    for (; digit < 3 && *rank >= counts.of[digit]; ++digit) *rank -= counts.of[digit];
    prefix |= digit << shift;
  }
  return prefix;
}

// Returns the position of occurrence number `rank`, from 0, of `key` among the keys.
template <typename Key>
TT_DEVICE int64_t find_position(Group& group, const Key* keys, int64_t n, Key key, int64_t rank) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    int64_t equals = 0;
    for (int64_t i = low + group.rank(); i <= middle; i += group.size()) equals += keys[i] == key;
    equals = group.reduce(equals, Add());
    if (equals > rank) {
      high = middle;
    } else {
      rank -= equals;
      low = middle + 1;
    }
  }
  return low;
}

// For each line of `length` keys, finds the position of the key that a stable sort would put at `rank`.
template <typename Key>
void find_positions(const Queue& queue, const RowKeys& keys, int64_t length, int64_t rank, const Tensor& positions) {
  const Key* all = keys.keys.data_as<Key>();
  const int bits = keys.bits;
  int64_t* to = positions.data_as<int64_t>();
  for_each_group(queue, positions.numel(), length / 4, [=] TT_DEVICE(Group & group) {
    const Key* line = all + group.index() * length;
    int64_t among_equals = rank;
    const Key key = find_key(group, line, length, bits, &among_equals);
    const int64_t position = find_position(group, line, length, key, among_equals);
    if (group.rank() == 0) to[group.index()] = position;
  });
}

// For each line, writes the `count` positions whose keys sort no later than the key at position `last`, in sorted
// order. `slot_counters` has one counter per line, initially 0. `unordered` is scratch memory of the size of `ordered`.
template <typename Key>
void select_up_to(const Queue& queue, const RowKeys& keys, int64_t length, const Tensor& last, int64_t count,
                  const Tensor& slot_counters, const Tensor& unordered, const Tensor& ordered) {
  const Key* all = keys.keys.data_as<Key>();
  const int64_t* lasts = last.data_as<int64_t>();
  int64_t *slots = slot_counters.data_as<int64_t>(), *all_chosen = unordered.data_as<int64_t>();
  int64_t* all_ordered = ordered.data_as<int64_t>();
  for_each_group(queue, last.numel(), length / 4, [=] TT_DEVICE(Group & group) {
    const int64_t line = group.index(), until = lasts[line];
    const Key* key = all + line * length;
    int64_t* chosen = all_chosen + line * count;
    for (int64_t i = group.rank(); i < length; i += group.size()) {
      if (key[i] < key[until] || (key[i] == key[until] && i <= until)) chosen[atomic_next(slots + line)] = i;
    }
    group.sync();
    for (int64_t c = group.rank(); c < count; c += group.size()) {
      const int64_t position = chosen[c];
      int64_t order = 0;
      for (int64_t o = 0; o < count; ++o) {
        order += key[chosen[o]] < key[position] || (key[chosen[o]] == key[position] && chosen[o] < position);
      }
      all_ordered[line * count + order] = position;
    }
  });
}

Tensor positions_of_rank(const Queue& queue, const RowKeys& keys, const DimIterator& lines, int64_t rank) {
  Tensor positions = empty({lines.count()}, DType::kInt64, queue.device());
  with_key(keys, [&]<typename Key>(std::type_identity<Key>) {
    find_positions<Key>(queue, keys, lines.length(), rank, positions);
  });
  return positions;
}

template <typename T>
void gather_selected_as(const Tensor& input, const DimIterator& lines, const RowSelection& which, const Tensor& values,
                        const Tensor& indices) {
  const T* from = input.data_as<T>();
  const int64_t* numbers = which.numbers.data_as<int64_t>();
  const int64_t step = which.step, first = which.first;
  T* to = values.data_as<T>();
  int64_t* where = indices.data_as<int64_t>();
  for_each(queue_of(values), lines.count(), [=] TT_DEVICE(int64_t line) {
    const int64_t position = numbers[line * step + first] % lines.length();
    to[line] = from[lines.start(line) + position * lines.stride()];
    where[line] = position;
  });
}

}  // namespace

Tensor ranked_rows(const Tensor& input, const DimIterator& lines, int64_t rank, bool descending) {
  return positions_of_rank(queue_of(input), row_keys(input, lines, descending), lines, rank);
}

Tensor first_of_rows(const Tensor& input, const DimIterator& lines, int64_t count, bool descending) {
  const Queue queue = queue_of(input);
  const RowKeys keys = row_keys(input, lines, descending);
  const Tensor last = positions_of_rank(queue, keys, lines, count - 1);
  const Tensor slot_counters = empty({lines.count()}, DType::kInt64, input.device());
  fill_with(slot_counters, Scalar(int64_t{0}));
  const Tensor unordered = empty({lines.count() * count}, DType::kInt64, input.device());
  Tensor ordered = empty({lines.count() * count}, DType::kInt64, input.device());
  with_key(keys, [&]<typename Key>(std::type_identity<Key>) {
    select_up_to<Key>(queue, keys, lines.length(), last, count, slot_counters, unordered, ordered);
  });
  return ordered;
}

void gather_selected(const Tensor& input, const DimIterator& lines, const RowSelection& which, const Tensor& values,
                     const Tensor& indices) {
  with_bits(input.dtype(),
            [&]<typename T>(std::type_identity<T>) { gather_selected_as<T>(input, lines, which, values, indices); });
}

}  // namespace tt::cuda
