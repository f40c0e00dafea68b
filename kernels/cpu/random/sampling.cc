// Weighted sums of elements at many positions of each channel, and their gradients; used for resampling by coordinates.
//
// sum(k) weight[n, k, p] * input[n, c, index[n, k, p]] is linear in all three tensors, so each kernel is the gradient
// of another.
#include <algorithm>
#include <limits>

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

constexpr int64_t kPlaces = 256;  // positions per block; their indices are checked once for all channels

// A batch of indices into channels of `length` elements: N x K x P, with K taps (indices) for each of P positions.
struct Places {
  Tensor index;
  int64_t batch, taps, count, length;

  Places(const Tensor& given, int64_t channel_length)
      : index(contiguous(given)),
        batch(given.size(0)),
        taps(given.size(1)),
        count(given.size(2)),
        length(channel_length) {
    check(length <= std::numeric_limits<int32_t>::max(), "expected channels of fewer than 2^31 elements, got ", length);
  }
  const int64_t* at(int64_t n, int64_t tap, int64_t place) const {
    return index.data_as<int64_t>() + (n * taps + tap) * count + place;
  }
  // Calls f(batch entry, first position, count) on the thread pool for all blocks of positions.
  template <typename F>
  void for_each_block(int64_t channels, F&& f) const {
    const int64_t blocks = (count + kPlaces - 1) / kPlaces, work = std::max<int64_t>(channels * taps * kPlaces, 1);
    parallel_for(batch * blocks, std::max<int64_t>(1, (1 << 15) / work), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b % blocks * kPlaces;
        f(b / blocks, first, std::min(kPlaces, count - first));
      }
    });
  }
};

// One tap's indices for a block of positions, replaced by 0 if outside the channel, and whether they are inside.
template <typename T>
struct Taps {
  int32_t at[kPlaces];
  T inside[kPlaces];  // 1 or 0
};

template <typename T>
TT_CLONES void look_at(int64_t n, const int64_t* index, int64_t length, Taps<T>& taps) {
  for (int64_t i = 0; i < n; ++i) {
    const bool inside = static_cast<uint64_t>(index[i]) < static_cast<uint64_t>(length);
    taps.at[i] = inside ? static_cast<int32_t>(index[i]) : 0;
    taps.inside[i] = inside ? T(1) : T(0);
  }
}
template <typename T>
TT_CLONES void add_sampled(int64_t n, const Taps<T>& taps, const T* __restrict weight, const T* __restrict channel,
                           T* __restrict sums) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = channel[taps.at[i]];
    sums[i] += weight[i] * (taps.inside[i] != T(0) ? value : T(0));
  }
}

}  // namespace

void sample_places(const Tensor& input, const Tensor& index, const Tensor& weight, Tensor& out) {
  const Places places(index, input.size(2));
  const Tensor x = as_accumulate_type(input), w = as_accumulate_type(weight);
  AccumulateBuffer result(out);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t channels = input.size(1);
    T* to = result.tensor().data_as<T>();
    places.for_each_block(channels, [&](int64_t n, int64_t first, int64_t count) {
      Taps<T> taps;
      for (int64_t c = 0; c < channels; ++c) std::fill_n(to + (n * channels + c) * places.count + first, count, T(0));
      for (int64_t k = 0; k < places.taps && places.length > 0; ++k) {
        look_at(count, places.at(n, k, first), places.length, taps);
        const T* weights = w.data_as<T>() + (n * places.taps + k) * places.count + first;
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t channel = n * channels + c;
          add_sampled(count, taps, weights, x.data_as<T>() + channel * places.length,
                      to + channel * places.count + first);
        }
      }
    });
  });
  result.copy_to_output();
}

void spread_places(const Tensor& values, const Tensor& index, const Tensor& weight, int64_t length, Tensor& out) {
  const Places places(index, length);
  const Tensor g = as_accumulate_type(values), w = as_accumulate_type(weight);
  AccumulateBuffer result(out);
  with_real(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t channels = values.size(1), work = std::max<int64_t>(places.taps * places.count, 1);
    // Each channel belongs to one thread, so that the order of additions to an element is deterministic.
    parallel_for(places.batch * channels, std::max<int64_t>(1, (1 << 15) / work), [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        const int64_t n = channel / channels;
        const T* from = g.data_as<T>() + channel * places.count;
        T* to = result.tensor().template data_as<T>() + channel * length;
        std::fill_n(to, length, T(0));
        for (int64_t k = 0; k < places.taps; ++k) {
          const int64_t* at = places.at(n, k, 0);
          const T* weights = w.data_as<T>() + (n * places.taps + k) * places.count;
          for (int64_t p = 0; p < places.count; ++p) {
            if (static_cast<uint64_t>(at[p]) < static_cast<uint64_t>(length)) to[at[p]] += weights[p] * from[p];
          }
        }
      }
    });
  });
  result.copy_to_output();
}

void match_places(const Tensor& values, const Tensor& input, const Tensor& index, Tensor& out) {
  const Places places(index, input.size(2));
  const Tensor g = as_accumulate_type(values), x = as_accumulate_type(input);
  AccumulateBuffer result(out);
  with_real(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t channels = input.size(1);
    places.for_each_block(channels, [&](int64_t n, int64_t first, int64_t count) {
      Taps<T> taps;
      for (int64_t k = 0; k < places.taps; ++k) {
        T* to = result.tensor().template data_as<T>() + (n * places.taps + k) * places.count + first;
        std::fill_n(to, count, T(0));
        if (places.length == 0) continue;
        look_at(count, places.at(n, k, first), places.length, taps);
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t channel = n * channels + c;
          add_sampled(count, taps, g.data_as<T>() + channel * places.count + first,
                      x.data_as<T>() + channel * places.length, to);
        }
      }
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
