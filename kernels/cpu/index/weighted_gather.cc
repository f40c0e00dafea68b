// Weighted sums of entries at given positions of each channel, and their gradients; used for resampling.
//
// sum(k) weight[n, k, p] * input[n, c, index[n, k, p], :] is linear in the input and in the weight, so each kernel is
// the gradient of another. An index outside the channel reads zeros.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

constexpr int64_t kBlock = 256;         // positions per block; their indices are checked once for several channels
constexpr int64_t kTapsPerPass = 4;     // taps that one pass over the sums adds
constexpr int64_t kTaskWork = 1 << 15;  // minimum multiplications per task of the pool

// A batch of indices (N, K, P) into channels of `length` entries, each of `inner` contiguous elements.
struct Positions {
  Tensor index;
  int64_t batch, taps, count, length, inner;

  // `entries` has the shape (N, C, L) or (N, C, L, I); only its sizes are used.
  Positions(const Tensor& given, const Tensor& entries, int64_t channel_length)
      : index(contiguous(given)),
        batch(given.size(0)),
        taps(given.size(1)),
        count(given.size(2)),
        length(channel_length),
        inner(entries.dim() == 4 ? entries.size(3) : 1) {
    check(inner != 1 || length <= std::numeric_limits<int32_t>::max(),
          "expected channels of less than 2^31 elements, got ", length);
  }
  const int64_t* at(int64_t n, int64_t tap, int64_t position) const {
    return index.data_as<int64_t>() + offset(n, tap, position);
  }
  // The offset of an index in `index`, and of its weight in the weights.
  int64_t offset(int64_t n, int64_t tap, int64_t position) const { return (n * taps + tap) * count + position; }
  bool inside(int64_t at) const { return static_cast<uint64_t>(at) < static_cast<uint64_t>(length); }

  // Calls f(batch entry, first position, count, first channel, last channel + 1) on the pool for all blocks of
  // positions and all channels.
  template <typename F>
  void for_each_block(int64_t channels, F&& f) const {
    if (count == 0 || channels == 0) return;
    const int64_t blocks = (count + kBlock - 1) / kBlock;
    const int64_t work = std::max<int64_t>(1, taps) * std::min(count, kBlock);  // per channel
    const int64_t together = std::clamp<int64_t>(kTaskWork / work, 1, channels);
    const int64_t groups = (channels + together - 1) / together;
    parallel_for(batch * blocks * groups, std::max<int64_t>(1, kTaskWork / (work * together)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; ++task) {
                     const int64_t group = task % groups * together, first = task / groups % blocks * kBlock;
                     f(task / groups / blocks, first, std::min(kBlock, count - first), group,
                       std::min(channels, group + together));
                   }
                 });
  }
};

// One tap of a block of positions: the index of each position, or 0 if that index is outside the channel.
template <typename T>
struct TapBlock {
  int32_t at[kBlock];
  T inside[kBlock];  // 1 or 0
  bool all_inside;
};

template <typename T>
TT_CLONES void check_inside(int64_t n, const int64_t* index, int64_t length, TapBlock<T>& tap) {
  int64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool inside = static_cast<uint64_t>(index[i]) < static_cast<uint64_t>(length);
    tap.at[i] = inside ? static_cast<int32_t>(index[i]) : 0;
    tap.inside[i] = inside ? T(1) : T(0);
    outside += !inside;
  }
  tap.all_inside = outside == 0;
}

// Adds weight[i] * channel[tap.at[i]] to sums[i].
template <typename T>
TT_CLONES void add_inside(int64_t n, const TapBlock<T>& tap, const T* __restrict weight, const T* __restrict channel,
                          T* __restrict sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += weight[i] * channel[tap.at[i]];
}
template <typename T>
TT_CLONES void add_checked(int64_t n, const TapBlock<T>& tap, const T* __restrict weight, const T* __restrict channel,
                           T* __restrict sums) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = channel[tap.at[i]];
    sums[i] += weight[i] * (tap.inside[i] != T(0) ? value : T(0));
  }
}
template <typename T>
TT_CLONES void set_two(int64_t n, const TapBlock<T>* tap, const T* __restrict weight0, const T* __restrict weight1,
                       const T* __restrict channel, T* __restrict sums) {
  const int32_t* __restrict at0 = tap[0].at;
  const int32_t* __restrict at1 = tap[1].at;
  for (int64_t i = 0; i < n; ++i) sums[i] = weight0[i] * channel[at0[i]] + weight1[i] * channel[at1[i]];
}
template <typename T>
void add_tap(int64_t n, const TapBlock<T>& tap, const T* weight, const T* channel, T* sums) {
  tap.all_inside ? add_inside(n, tap, weight, channel, sums) : add_checked(n, tap, weight, channel, sums);
}

// Up to kTapsPerPass rows with their weights. Their weighted sum is the result, or is added to it.
template <typename T>
struct WeightedRows {
  std::array<const T*, kTapsPerPass> row;
  std::array<T, kTapsPerPass> weight;
  int count = 0;

  void add(const T* data, T factor) {
    row[static_cast<size_t>(count)] = data;
    weight[static_cast<size_t>(count++)] = factor;
  }
};

template <typename T>
TT_CLONES void set_sum(int64_t n, const WeightedRows<T>& rows, T* __restrict to) {
  const T* __restrict a = rows.row[0], * __restrict b = rows.row[1], * __restrict c = rows.row[2], * __restrict d = rows.row[3];
  const auto [wa, wb, wc, wd] = rows.weight;
  switch (rows.count) {
    case 0: std::fill_n(to, n, T(0)); return;
    case 1:
      for (int64_t i = 0; i < n; ++i) to[i] = wa * a[i];
      return;
    case 2:
      for (int64_t i = 0; i < n; ++i) to[i] = wa * a[i] + wb * b[i];
      return;
    case 3:
      for (int64_t i = 0; i < n; ++i) to[i] = wa * a[i] + wb * b[i] + wc * c[i];
      return;
    default:
      for (int64_t i = 0; i < n; ++i) to[i] = wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i];
  }
}
template <typename T>
TT_CLONES void add_scaled(int64_t n, T factor, const T* __restrict row, T* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * row[i];
}
template <typename T>
TT_CLONES T dot(int64_t n, const T* __restrict a, const T* __restrict b) {
  T sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// Computes the sums of entries of one element. A block's taps are checked once and used for several channels.
template <typename T>
void gather_elements(const Positions& positions, int64_t channels, const T* x, const T* weight, T* to) {
  positions.for_each_block(channels, [&](int64_t n, int64_t first, int64_t count, int64_t channel, int64_t end) {
    std::array<TapBlock<T>, kTapsPerPass> taps;
    const auto sums = [&](int64_t c) { return to + (n * channels + c) * positions.count + first; };
    const auto weights = [&](int64_t k) { return weight + positions.offset(n, k, first); };
    const int64_t all = positions.length > 0 ? positions.taps : 0;
    for (int64_t c = channel; c < end && all == 0; ++c) std::fill_n(sums(c), count, T(0));
    for (int64_t k = 0; k < all; k += kTapsPerPass) {
      const int64_t some = std::min(kTapsPerPass, all - k);
      for (int64_t j = 0; j < some; ++j) {
        check_inside(count, positions.at(n, k + j, first), positions.length, taps[static_cast<size_t>(j)]);
      }
      const bool starts_with_two = k == 0 && some > 1 && taps[0].all_inside && taps[1].all_inside;
      for (int64_t c = channel; c < end; ++c) {
        const T* from = x + (n * channels + c) * positions.length;
        if (starts_with_two) {
          set_two(count, taps.data(), weights(0), weights(1), from, sums(c));
        } else if (k == 0) {
          std::fill_n(sums(c), count, T(0));
        }
        for (int64_t j = starts_with_two ? 2 : 0; j < some; ++j) {
          add_tap(count, taps[static_cast<size_t>(j)], weights(k + j), from, sums(c));
        }
      }
    }
  });
}

// Computes the sums of entries of several elements: adds up whole rows for each position of each channel.
template <typename T>
void gather_rows(const Positions& positions, int64_t channels, const T* x, const T* weight, T* to) {
  const int64_t inner = positions.inner, work = std::max<int64_t>(1, positions.taps * inner);
  parallel_for(positions.batch * channels * positions.count, std::max<int64_t>(1, kTaskWork / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t p = i % positions.count, channel = i / positions.count, n = channel / channels;
                   const T* const entries = x + channel * positions.length * inner;
                   WeightedRows<T> rows;
                   bool first = true;
                   const auto flush = [&] {
                     if (first) {
                       set_sum(inner, rows, to + i * inner);
                     } else {
                       for (int j = 0; j < rows.count; ++j) {
                         add_scaled(inner, rows.weight[static_cast<size_t>(j)], rows.row[static_cast<size_t>(j)],
                                    to + i * inner);
                       }
                     }
                     first = false;
                     rows.count = 0;
                   };
                   for (int64_t k = 0; k < positions.taps; ++k) {
                     const int64_t at = *positions.at(n, k, p);
                     if (!positions.inside(at)) continue;
                     if (rows.count == kTapsPerPass) flush();
                     rows.add(entries + at * inner, weight[positions.offset(n, k, p)]);
                   }
                   flush();
                 }
               });
}

}  // namespace

void weighted_gather(const Tensor& input, const Tensor& index, const Tensor& weight, Tensor& out) {
  const Positions positions(index, input, input.size(2));
  const Tensor x = as_accumulate_type(input), w = as_accumulate_type(weight);
  AccumulateBuffer result(out);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto gather = positions.inner == 1 ? &gather_elements<T> : &gather_rows<T>;
    gather(positions, input.size(1), x.data_as<T>(), w.data_as<T>(), result.data<T>());
  });
  result.copy_to_output();
}

void weighted_gather_input_grad(const Tensor& values, const Tensor& index, const Tensor& weight, int64_t length,
                                Tensor& out) {
  const Positions positions(index, values, length);
  const Tensor g = as_accumulate_type(values), w = as_accumulate_type(weight);
  AccumulateBuffer result(out);
  with_real(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t channels = values.size(1), inner = positions.inner;
    const int64_t work = std::max<int64_t>(positions.taps * positions.count * inner, 1);
    // Each channel belongs to one thread, so that the order of additions to an element is deterministic.
    parallel_for(positions.batch * channels, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        const int64_t n = channel / channels;
        const T* from = g.data_as<T>() + channel * positions.count * inner;
        T* to = result.data<T>() + channel * length * inner;
        std::fill_n(to, length * inner, T(0));
        for (int64_t k = 0; k < positions.taps; ++k) {
          const int64_t* at = positions.at(n, k, 0);
          const T* weights = w.data_as<T>() + positions.offset(n, k, 0);
          for (int64_t p = 0; p < positions.count; ++p) {
            if (!positions.inside(at[p])) continue;
            if (inner == 1) {
              to[at[p]] += weights[p] * from[p];
            } else {
              add_scaled(inner, weights[p], from + p * inner, to + at[p] * inner);
            }
          }
        }
      }
    });
  });
  result.copy_to_output();
}

void weighted_gather_weight_grad(const Tensor& values, const Tensor& input, const Tensor& index, Tensor& out) {
  const Positions positions(index, input, input.size(2));
  const Tensor g = as_accumulate_type(values), x = as_accumulate_type(input);
  AccumulateBuffer result(out);
  with_real(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t channels = input.size(1), inner = positions.inner;
    const int64_t work = std::max<int64_t>(channels * inner, 1);
    const auto products = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t p = i % positions.count, n = i / positions.count / positions.taps;
        const int64_t at = positions.index.template data_as<int64_t>()[i];
        T sum = 0;
        for (int64_t channel = n * channels; channel < (n + 1) * channels && positions.inside(at); ++channel) {
          sum += dot(inner, g.data_as<T>() + (channel * positions.count + p) * inner,
                     x.data_as<T>() + (channel * positions.length + at) * inner);
        }
        result.data<T>()[i] = sum;
      }
    };
    if (inner != 1) return parallel_for(out.numel(), std::max<int64_t>(1, kTaskWork / work), products);
    // Each task adds up one tap of a block of positions over all channels; the sums stay in the cache.
    const int64_t blocks = (positions.count + kBlock - 1) / kBlock;
    parallel_for(positions.batch * positions.taps * blocks, std::max<int64_t>(1, kTaskWork / (work * kBlock)),
                 [&](int64_t begin, int64_t end) {
                   TapBlock<T> tap;
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t k = i / blocks % positions.taps, n = i / blocks / positions.taps;
                     const int64_t first = i % blocks * kBlock, count = std::min(kBlock, positions.count - first);
                     T* sums = result.data<T>() + positions.offset(n, k, first);
                     std::fill_n(sums, count, T(0));
                     if (positions.length == 0) continue;
                     check_inside(count, positions.at(n, k, first), positions.length, tap);
                     for (int64_t channel = n * channels; channel < (n + 1) * channels; ++channel) {
                       add_tap(count, tap, g.data_as<T>() + channel * positions.count + first,
                               x.data_as<T>() + channel * positions.length, sums);
                     }
                   }
                 });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
