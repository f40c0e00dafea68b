// RowSorter: sorts rows by keys. A key is an unsigned integer with the same order as the element, followed by the
// element's index. A library sort of these integers is therefore stable and yields the indices.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <hwy/contrib/sort/vqsort.h>

#include "engine/device/parallel.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/sort/sort_key.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

// Key and index as one integer, ordered by key first.
template <typename Key>
using Keyed = std::conditional_t<sizeof(Key) == 4, uint64_t, unsigned __int128>;

template <typename Key>
[[gnu::always_inline]] inline Keyed<Key> keyed(Key key, int64_t index) {
  return static_cast<Keyed<Key>>(key) << (8 * sizeof(Key)) | static_cast<Keyed<Key>>(index);
}
template <typename K>
int64_t index_of(K keyed) {
  if constexpr (sizeof(K) == 8)
    return static_cast<int64_t>(keyed & 0xffffffffu);
  else
    return static_cast<int64_t>(keyed);
}
// The smallest integer with the same key as `keyed`.
template <typename K>
K lower_bound_of_key(K keyed) {
  constexpr int kIndexBits = 4 * sizeof(K);
  return keyed >> kIndexBits << kIndexBits;
}

// Maps elements to keys in ascending or descending order, minus `base`, so that the smallest key can be 0.
template <typename T>
struct Order {
  SortKey<T> flip, base = 0;
  explicit Order(bool descending) : flip(descending ? ~SortKey<T>{0} : SortKey<T>{0}) {}
  [[gnu::always_inline]] SortKey<T> operator()(T x) const {
    return static_cast<SortKey<T>>((sort_key(x) ^ flip) - base);
  }
};

// out[i] = the key of x[i * stride], converted to `Key`, combined with index first + i.
template <typename Key, typename T>
TT_CLONES void make_keys(Keyed<Key>* __restrict out, const T* __restrict x, int64_t stride, int64_t n, Order<T> order,
                         int64_t first) {
  for (int64_t i = 0; i < n; ++i) out[i] = keyed(static_cast<Key>(order(x[i * stride])), first + i);
}

// out[i] = the key of x[i * stride].
template <typename T>
TT_CLONES void make_keys_without_index(SortKey<T>* __restrict out, const T* __restrict x, int64_t stride, int64_t n,
                                       Order<T> order) {
  for (int64_t i = 0; i < n; ++i) out[i] = order(x[i * stride]);
}

// The smallest and the largest key of a row. Requires at least one element.
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

// The number of keys that are at most `bound`.
template <typename K>
TT_CLONES int64_t count_within(const K* keys, int64_t n, K bound) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += keys[i] <= bound;
  return count;
}

// The number of keys that are at most `bound`, for fewer than 2^32 keys. Counts in the keys' type, so that a vector
// holds as many counts as keys.
template <typename Key>
TT_CLONES int64_t count_keys_within(const Key* keys, int64_t n, Key bound) {
  Key count = 0;
  for (int64_t i = 0; i < n; ++i) count += static_cast<Key>(keys[i] <= bound);
  return static_cast<int64_t>(count);
}

// Copies the keys within [low, high] to `to`, in order, and returns their number. `to` may be `keys`; else it has space
// for one key more.
template <typename Key>
int64_t copy_keys_within(const Key* keys, int64_t n, Key low, Key high, Key* to) {
  int64_t held = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Key key = keys[i];
    to[held] = key;
    held += key - low <= high - low;
  }
  return held;
}

// The thread's sorter, which holds a buffer.
inline const hwy::Sorter& thread_sorter() {
  thread_local const hwy::Sorter sorter;
  return sorter;
}

// Highway's sort takes random numbers from the system in each call, which takes longer than sorting a few keys.
inline constexpr int64_t kFewKeys = 32;

inline void sort_keys(uint64_t* keys, int64_t n) {
  if (n <= kFewKeys) return std::sort(keys, keys + n);
  thread_sorter()(keys, static_cast<size_t>(n), hwy::SortAscending());
}
inline void sort_keys(unsigned __int128* keys, int64_t n) {
  if (n <= kFewKeys) return std::sort(keys, keys + n);
  thread_sorter()(reinterpret_cast<hwy::uint128_t*>(keys), static_cast<size_t>(n), hwy::SortAscending());
}

// Sorts one row at a time. Holds the keys of the row. One thread uses a RowSorter for many rows.
template <typename T>
class RowSorter {
 public:
  using K = Keyed<SortKey<T>>;

  // `keys` has space for the elements of a row, fewer than 2^32 if keys have 32 bits. It is in use until the sorter's
  // end, which clears `taken`.
  RowSorter(K* keys, std::atomic<bool>* taken) : keys_(keys), taken_(taken) {}
  ~RowSorter() { taken_->store(false, std::memory_order_release); }
  RowSorter(const RowSorter&) = delete;
  RowSorter& operator=(const RowSorter&) = delete;

  // Returns f(keys), where `keys` are the row's elements in order. Keys have type K, or uint64_t for integers within a
  // range of 2^32.
  template <typename F>
  auto sort(const T* x, int64_t stride, int64_t n, bool descending, F f);

  // Returns the first k elements in order. Fast if n is much larger than k.
  const K* sort_first(const T* x, int64_t stride, int64_t n, int64_t k, bool descending);

  // Returns the first k elements in order, for k <= kFew, by insertion into a sorted list.
  const K* sort_few(const T* x, int64_t stride, int64_t n, int64_t k, bool descending);
  static constexpr int64_t kFew = 16;

  // Returns the index of the element of rank `rank` (from 0) in a stable order, or (if `nan_wins`) of the first NaN.
  // For rows of fewer than 2^32 elements.
  int64_t index_of_rank(const T* x, int64_t stride, int64_t n, int64_t rank, bool nan_wins);

  // The number of keys that sort_first() stores at a time.
  static int64_t first_capacity(int64_t k) { return std::max<int64_t>(4 * k, 4096) + kBatch; }

 private:
  static constexpr int64_t kBatch = 512;
  static constexpr bool kWhole = std::is_integral_v<T> || std::is_same_v<T, Bool>;
  static constexpr int64_t kBins = 4096;  // maximum number of distinct keys for counting sort

  const uint64_t* sort_by_counting(const T* x, int64_t stride, int64_t n, Order<T> order, int64_t bins);
  template <typename Key>
  const Keyed<Key>* sort_by_comparing(const T* x, int64_t stride, int64_t n, Order<T> order) {
    auto* keys = reinterpret_cast<Keyed<Key>*>(keys_);
    make_keys<Key>(keys, x, stride, n, order, 0);
    sort_keys(keys, n);
    return keys;
  }

  K* const keys_;
  std::atomic<bool>* const taken_;
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
  uint32_t next[kBins];  // index of the next element with each key
  std::fill_n(next, bins, 0);
  for (int64_t i = 0; i < n; ++i) ++next[order(x[i * stride])];
  for (uint32_t bin = 0, before = 0; bin < bins; ++bin) before += std::exchange(next[bin], before);
  for (int64_t i = 0; i < n; ++i) {
    const auto key = static_cast<uint32_t>(order(x[i * stride]));
    keys[next[key]++] = keyed(key, i);
  }
  return keys;
}

// Collects candidates: elements whose keys are at most `bound`. When the buffer is full, keeps the first k candidates
// and lowers `bound` to the k-th of them. After the first batches, few elements are candidates.
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
  sort_keys(keys_, held);
  return keys_;
}

template <typename T>
const typename RowSorter<T>::K* RowSorter<T>::sort_few(const T* x, int64_t stride, int64_t n, int64_t k,
                                                       bool descending) {
  SortKey<T> batch[kBatch];
  int64_t held = 0;
  for (int64_t i = 0; i < n; i += kBatch) {
    const int64_t m = std::min(kBatch, n - i);
    make_keys_without_index(batch, x + i * stride, stride, m, Order<T>(descending));
    for (int64_t j = 0; j < m; ++j) {
      const K candidate = keyed(batch[j], i + j);
      if (held == k && candidate > keys_[k - 1]) [[likely]]
        continue;
      int64_t index = held < k ? held++ : k - 1;
      for (; index > 0 && candidate < keys_[index - 1]; --index) keys_[index] = keys_[index - 1];
      keys_[index] = candidate;
    }
  }
  return keys_;
}

// Halves the range of keys that contains the key of this rank until few keys are in it. A pass only compares and
// counts, which vectorises. Of long rows, the keys outside the range are dropped when they are most of the keys.
template <typename T>
int64_t RowSorter<T>::index_of_rank(const T* x, int64_t stride, int64_t n, int64_t rank, bool nan_wins) {
  using Key = SortKey<T>;
  constexpr int64_t kEnough = 8, kLong = 4096;
  auto* keys = reinterpret_cast<Key*>(keys_);
  const Order<T> order(false);
  make_keys_without_index(keys, x, stride, n, order);
  auto [low, high] = key_bounds(x, stride, n, order);
  int64_t held = n, dropped = 0;  // keys in memory; keys below the range that are not in memory any more
  int64_t below = 0, within = n;  // keys below the range, and in it
  if constexpr (!kWhole) {
    if (nan_wins && high == ~Key{0}) low = high, rank = 0;  // the key of NaN only
  }
  while (low < high && within > kEnough) {
    const Key middle = low + (high - low) / 2;
    const int64_t at_most = dropped + count_keys_within(keys, held, middle);
    if (at_most > rank) {
      high = middle;
      within = at_most - below;
    } else {
      low = middle + 1;
      within -= at_most - below;
      below = at_most;
    }
    if (n >= kLong && within * 4 <= held) {
      held = copy_keys_within(keys, held, low, high, keys);
      dropped = below;
    }
  }
  Key found = low;
  int64_t equal_before = rank - below;  // elements with the same key that precede the result
  if (low < high) {
    Key last[kEnough + 1];
    const int64_t count = copy_keys_within(keys, held, low, high, last);
    std::sort(last, last + count);
    found = last[rank - below];
    equal_before -= std::lower_bound(last, last + count, found) - last;
  }
  int64_t i = 0;
  if (held == n) {
    while (keys[i] != found || equal_before-- > 0) ++i;
  } else {
    while (order(x[i * stride]) != found || equal_before-- > 0) ++i;
  }
  return i;
}

// Memory for the keys of one row per thread, allocated from the engine's pool, because faulting in fresh pages would
// take longer than sorting. Create it before the parallel loop, because the constructor may throw.
template <typename T>
class KeyBuffers {
 public:
  using K = typename RowSorter<T>::K;

  // Allocates buffers for sorting `rows` rows of at most `length` elements.
  KeyBuffers(int64_t rows, int64_t length)
      : length_(length),
        count_(std::min<int64_t>(rows, num_threads())),
        taken_(std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(count_))),
        memory_(empty({count_ * length * static_cast<int64_t>(sizeof(K) / 8)}, DType::kInt64, Device{})) {}

  // Each call of the loop's body makes one, in which it sorts its rows. A thread calls the body once per block
  // (parallel.h), so that buffers are used again.
  RowSorter<T> make_sorter() {
    int64_t i = 0;
    while (taken_[i].exchange(true, std::memory_order_acquire)) i = i + 1 < count_ ? i + 1 : 0;
    return RowSorter<T>(memory_.template data_as<K>() + i * length_, &taken_[i]);
  }

 private:
  const int64_t length_, count_;
  const std::unique_ptr<std::atomic<bool>[]> taken_;
  Tensor memory_;
};

}  // namespace tt::cpu
