// Sorting rows by keys: elements become unsigned integers that sort as the elements do, with
// their place beside them, so one library sort of plain integers is stable and gives indices.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <hwy/contrib/sort/vqsort.h>

#include "engine/device/parallel.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/sort/sort_key.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

// Key and place as one integer that compares by key first.
template <typename Key>
using Keyed = std::conditional_t<sizeof(Key) == 4, uint64_t, unsigned __int128>;

template <typename Key>
[[gnu::always_inline]] inline Keyed<Key> keyed(Key key, int64_t place) {
  return static_cast<Keyed<Key>>(key) << (8 * sizeof(Key)) | static_cast<Keyed<Key>>(place);
}
template <typename K>
int64_t place_of(K keyed) {
  if constexpr (sizeof(K) == 8)
    return static_cast<int64_t>(keyed & 0xffffffffu);
  else
    return static_cast<int64_t>(keyed);
}
// The least integer with the key of `keyed`.
template <typename K>
K first_of_key(K keyed) {
  constexpr int kPlaceBits = 4 * sizeof(K);
  return keyed >> kPlaceBits << kPlaceBits;
}

// From a row's elements to keys in the order asked for, of which the least is 0 where `base` is the least one.
template <typename T>
struct Order {
  SortKey<T> flip, base = 0;
  explicit Order(bool descending) : flip(descending ? ~SortKey<T>{0} : SortKey<T>{0}) {}
  [[gnu::always_inline]] SortKey<T> operator()(T x) const {
    return static_cast<SortKey<T>>((sort_key(x) ^ flip) - base);
  }
};

// out[i] = the key of x[i * stride], which `Key` holds, with first + i.
template <typename Key, typename T>
TT_CLONES void make_keys(Keyed<Key>* __restrict out, const T* __restrict x, int64_t stride, int64_t n, Order<T> order,
                         int64_t first) {
  for (int64_t i = 0; i < n; ++i) out[i] = keyed(static_cast<Key>(order(x[i * stride])), first + i);
}

// out[i] = the key of x[i * stride].
template <typename T>
TT_CLONES void make_bare_keys(SortKey<T>* __restrict out, const T* __restrict x, int64_t stride, int64_t n,
                              Order<T> order) {
  for (int64_t i = 0; i < n; ++i) out[i] = order(x[i * stride]);
}

// The row's least key and its largest. Requires an element.
template <typename T>
TT_CLONES std::pair<SortKey<T>, SortKey<T>> key_bounds(const T* x, int64_t stride, int64_t n, Order<T> order) {
  SortKey<T> least = ~SortKey<T>{0}, most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const SortKey<T> key = order(x[i * stride]);
    least = key < least ? key : least;
    most = key > most ? key : most;
  }
  return {least, most};
}

// How many keys do not come after `bound`.
template <typename K>
TT_CLONES int64_t count_within(const K* keys, int64_t n, K bound) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += keys[i] <= bound;
  return count;
}

inline void sort_keys(const hwy::Sorter& sorter, uint64_t* keys, int64_t n) {
  sorter(keys, static_cast<size_t>(n), hwy::SortAscending());
}
inline void sort_keys(const hwy::Sorter& sorter, unsigned __int128* keys, int64_t n) {
  sorter(reinterpret_cast<hwy::uint128_t*>(keys), static_cast<size_t>(n), hwy::SortAscending());
}

// One row's keys and what sorting them needs; for one thread, which uses it for many rows.
template <typename T>
class RowSorter {
 public:
  using K = Keyed<SortKey<T>>;

  // `keys` has room for the rows' elements, which must be less than 2^32 where keys have 32 bits.
  explicit RowSorter(K* keys) : keys_(keys) {}

  // Gives f(keys), the row's elements in order: of type K, or of 64 bits where whole numbers lie that close together.
  template <typename F>
  auto sort(const T* x, int64_t stride, int64_t n, bool descending, F f);

  // The first k of them, of a row whose n is much larger than k.
  const K* sort_first(const T* x, int64_t stride, int64_t n, int64_t k, bool descending);

  // The first k of them, where k is at most kFew: each that comes before the last of those held goes to its place.
  const K* sort_few(const T* x, int64_t stride, int64_t n, int64_t k, bool descending);
  static constexpr int64_t kFew = 16;

  // How many keys sort_first() holds at a time.
  static int64_t first_capacity(int64_t k) { return std::max<int64_t>(4 * k, 4096) + kBatch; }

 private:
  static constexpr int64_t kBatch = 512;
  static constexpr bool kWhole = std::is_integral_v<T> || std::is_same_v<T, Bool>;
  static constexpr int64_t kBins = 4096;  // different keys that are counted rather than compared

  const uint64_t* sort_by_counting(const T* x, int64_t stride, int64_t n, Order<T> order, int64_t bins);
  template <typename Key>
  const Keyed<Key>* sort_by_comparing(const T* x, int64_t stride, int64_t n, Order<T> order) {
    auto* keys = reinterpret_cast<Keyed<Key>*>(keys_);
    make_keys<Key>(keys, x, stride, n, order, 0);
    sort_keys(sorter_, keys, n);
    return keys;
  }

  K* keys_;
  hwy::Sorter sorter_;
};

template <typename T>
template <typename F>
auto RowSorter<T>::sort(const T* x, int64_t stride, int64_t n, bool descending, F f) {
  Order<T> order(descending);
  if constexpr (kWhole) {
    const auto [least, most] = key_bounds(x, stride, n, order);
    const SortKey<T> span = most - least;
    if (n <= UINT32_MAX && span <= UINT32_MAX) {
      order.base = least;
      if (span < kBins && static_cast<int64_t>(span) <= n) {
        return f(sort_by_counting(x, stride, n, order, static_cast<int64_t>(span) + 1));
      }
      return f(sort_by_comparing<uint32_t>(x, stride, n, order));
    }
  }
  return f(sort_by_comparing<SortKey<T>>(x, stride, n, order));
}

template <typename T>
const uint64_t* RowSorter<T>::sort_by_counting(const T* x, int64_t stride, int64_t n, Order<T> order, int64_t bins) {
  auto* keys = reinterpret_cast<uint64_t*>(keys_);
  uint32_t next[kBins];  // where a key's next element goes
  std::fill_n(next, bins, 0);
  for (int64_t i = 0; i < n; ++i) ++next[order(x[i * stride])];
  for (uint32_t bin = 0, before = 0; bin < bins; ++bin) before += std::exchange(next[bin], before);
  for (int64_t i = 0; i < n; ++i) {
    const auto key = static_cast<uint32_t>(order(x[i * stride]));
    keys[next[key]++] = keyed(key, i);
  }
  return keys;
}

// Candidates are those that come before the k-th of what was seen at the last look; they are few
// after the first batches.
template <typename T>
const typename RowSorter<T>::K* RowSorter<T>::sort_first(const T* x, int64_t stride, int64_t n, int64_t k,
                                                         bool descending) {
  K batch[kBatch];
  K bound = ~K{0};
  int64_t held = 0;
  const int64_t most = first_capacity(k) - kBatch;
  for (int64_t i = 0; i < n; i += kBatch) {
    const int64_t m = std::min(kBatch, n - i);
    make_keys<SortKey<T>>(batch, x + i * stride, stride, m, Order<T>(descending), i);
    if (count_within(batch, m, bound) == 0) continue;
    for (int64_t j = 0; j < m; ++j) {
      keys_[held] = batch[j];
      held += batch[j] <= bound;
    }
    if (held >= most) {
      std::nth_element(keys_, keys_ + k - 1, keys_ + held);
      held = k;
      bound = keys_[k - 1];
    }
  }
  sort_keys(sorter_, keys_, held);
  return keys_;
}

template <typename T>
const typename RowSorter<T>::K* RowSorter<T>::sort_few(const T* x, int64_t stride, int64_t n, int64_t k,
                                                       bool descending) {
  SortKey<T> batch[kBatch];
  int64_t held = 0;
  for (int64_t i = 0; i < n; i += kBatch) {
    const int64_t m = std::min(kBatch, n - i);
    make_bare_keys(batch, x + i * stride, stride, m, Order<T>(descending));
    for (int64_t j = 0; j < m; ++j) {
      const K candidate = keyed(batch[j], i + j);
      if (held == k && candidate > keys_[k - 1]) [[likely]]
        continue;
      int64_t place = held < k ? held++ : k - 1;
      for (; place > 0 && candidate < keys_[place - 1]; --place) keys_[place] = keys_[place - 1];
      keys_[place] = candidate;
    }
  }
  return keys_;
}

// Room for the keys of as many rows as there are threads, from the engine's pool: fresh pages
// would take longer than sorting. Made before the threads' loop, since it may throw.
template <typename T>
class KeyRoom {
 public:
  using K = typename RowSorter<T>::K;

  // For `lines` rows of up to `length` keys.
  KeyRoom(int64_t lines, int64_t length)
      : length_(length),
        room_(empty({std::min<int64_t>(lines, num_threads()) * length * static_cast<int64_t>(sizeof(K) / 8)},
                    DType::kInt64, Device{})) {}
  // Each thread of the loop takes one, once.
  RowSorter<T> take() { return RowSorter<T>(room_.template data_as<K>() + taken_.fetch_add(1) * length_); }

 private:
  int64_t length_;
  Tensor room_;
  std::atomic<int64_t> taken_{0};
};

}  // namespace tt::cpu
