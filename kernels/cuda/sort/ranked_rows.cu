#include "kernels/cuda/sort/ranked_rows.h"

#include "kernels/common/iteration/element.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/launch/atomic.h"

namespace tt::cuda {

namespace {

// How many keys have each value of two bits; the fourth is the rest.
struct DigitCounts {
  int64_t of[3];
};
struct AddCounts {
  TT_FUNCTION DigitCounts operator()(const DigitCounts& a, const DigitCounts& b) const {
    return {{a.of[0] + b.of[0], a.of[1] + b.of[1], a.of[2] + b.of[2]}};
  }
};

// Of those of `keys` whose bits from `shift` + 2 on are those of `prefix`, the counts of the next two bits.
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

// The key that is at *rank in order. *rank becomes its rank among its equals.
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

// Where the equal of `key` with that rank among them is.
template <typename Key>
TT_DEVICE int64_t find_place(Group& group, const Key* keys, int64_t n, Key key, int64_t rank) {
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

// Of each line, which are `length` keys long, the place of the one of that rank.
template <typename Key>
void find_places(const Queue& queue, const RowKeys& keys, int64_t length, int64_t rank, const Tensor& places) {
  const Key* all = keys.keys.data_as<Key>();
  const int bits = keys.bits;
  int64_t* to = places.data_as<int64_t>();
  for_each_group(queue, places.numel(), length / 4, [=] TT_DEVICE(Group & group) {
    const Key* line = all + group.index() * length;
    int64_t among_equals = rank;
    const Key key = find_key(group, line, length, bits, &among_equals);
    const int64_t place = find_place(group, line, length, key, among_equals);
    if (group.rank() == 0) to[group.index()] = place;
  });
}

// Of each line those that come no later than the one at its place in `last`, `count` of them, in order. `taken` counts
// them, from 0, for each line; `unordered` is room for as many as `ordered`.
template <typename Key>
void take_until(const Queue& queue, const RowKeys& keys, int64_t length, const Tensor& last, int64_t count,
                const Tensor& taken, const Tensor& unordered, const Tensor& ordered) {
  const Key* all = keys.keys.data_as<Key>();
  const int64_t* lasts = last.data_as<int64_t>();
  int64_t *slots = taken.data_as<int64_t>(), *all_chosen = unordered.data_as<int64_t>();
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
      const int64_t place = chosen[c];
      int64_t order = 0;
      for (int64_t o = 0; o < count; ++o) {
        order += key[chosen[o]] < key[place] || (key[chosen[o]] == key[place] && chosen[o] < place);
      }
      all_ordered[line * count + order] = place;
    }
  });
}

Tensor places_of_rank(const Queue& queue, const RowKeys& keys, const DimIterator& lines, int64_t rank) {
  Tensor places = empty({lines.count()}, DType::kInt64, queue.device());
  with_key(keys,
           [&]<typename Key>(std::type_identity<Key>) { find_places<Key>(queue, keys, lines.length(), rank, places); });
  return places;
}

template <typename T>
void take_elements(const Tensor& input, const DimIterator& lines, const OneOfEach& which, const Tensor& values,
                   const Tensor& indices) {
  const T* from = input.data_as<T>();
  const int64_t* numbers = which.numbers.data_as<int64_t>();
  const int64_t step = which.step, first = which.first;
  T* to = values.data_as<T>();
  int64_t* where = indices.data_as<int64_t>();
  for_each(queue_of(values), lines.count(), [=] TT_DEVICE(int64_t line) {
    const int64_t place = numbers[line * step + first] % lines.length();
    to[line] = from[lines.start(line) + place * lines.stride()];
    where[line] = place;
  });
}

}  // namespace

Tensor ranked_rows(const Tensor& input, const DimIterator& lines, int64_t rank, bool descending) {
  return places_of_rank(queue_of(input), line_keys(input, lines, descending), lines, rank);
}

Tensor first_of_rows(const Tensor& input, const DimIterator& lines, int64_t count, bool descending) {
  const Queue queue = queue_of(input);
  const RowKeys keys = line_keys(input, lines, descending);
  const Tensor last = places_of_rank(queue, keys, lines, count - 1);
  const Tensor taken = empty({lines.count()}, DType::kInt64, input.device());
  fill_with(taken, Scalar(int64_t{0}));
  const Tensor unordered = empty({lines.count() * count}, DType::kInt64, input.device());
  Tensor ordered = empty({lines.count() * count}, DType::kInt64, input.device());
  with_key(keys, [&]<typename Key>(std::type_identity<Key>) {
    take_until<Key>(queue, keys, lines.length(), last, count, taken, unordered, ordered);
  });
  return ordered;
}

void take_each(const Tensor& input, const DimIterator& lines, const OneOfEach& which, const Tensor& values,
               const Tensor& indices) {
  with_bits(input.dtype(),
            [&]<typename T>(std::type_identity<T>) { take_elements<T>(input, lines, which, values, indices); });
}

}  // namespace tt::cuda
