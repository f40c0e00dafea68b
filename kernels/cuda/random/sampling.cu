// Weighted sums of elements at given positions of each channel, and their gradients, as in
// kernels/cpu/random/sampling.cc. One thread computes each result.
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/kernels.h"

namespace tt::cuda {
namespace {

// Indices of shape (N, taps, count) into channels of shape (N, channels, length).
struct Places {
  const int64_t* index;
  int64_t channels, taps, count, length;

  Places(const Tensor& contiguous_index, int64_t channels, int64_t length)
      : index(contiguous_index.data_as<int64_t>()),
        channels(channels),
        taps(contiguous_index.size(1)),
        count(contiguous_index.size(2)),
        length(length) {}
  // Returns the offset of element (n, k, p) in the indices and in the weights.
  TT_DEVICE int64_t tap(int64_t n, int64_t k, int64_t p) const { return (n * taps + k) * count + p; }
  TT_DEVICE bool holds(int64_t at) const { return at >= 0 && at < length; }
};

template <typename T>
void sample(const Queue& queue, Places places, int64_t results, const T* x, const T* weight, T* to) {
  for_each(queue, results, [=] TT_DEVICE(int64_t i) {
    const int64_t p = i % places.count, channel = i / places.count, n = channel / places.channels;
    AccumulateType<T> sum = 0;
    for (int64_t k = 0; k < places.taps; ++k) {
      const int64_t tap = places.tap(n, k, p), at = places.index[tap];
      const AccumulateType<T> value =
          places.holds(at) ? convert<AccumulateType<T>>(x[channel * places.length + at]) : AccumulateType<T>(0);
      sum += convert<AccumulateType<T>>(weight[tap]) * value;
    }
    to[i] = convert<T>(sum);
  });
}

template <typename T>
void spread(const Queue& queue, Places places, int64_t values, const T* from, const T* weight,
            AccumulateType<T>* sums) {
  for_each(queue, values, [=] TT_DEVICE(int64_t i) {
    const int64_t p = i % places.count, channel = i / places.count, n = channel / places.channels;
    for (int64_t k = 0; k < places.taps; ++k) {
      const int64_t tap = places.tap(n, k, p), at = places.index[tap];
      if (!places.holds(at)) continue;
      atomic_add(sums + channel * places.length + at,
                 convert<AccumulateType<T>>(weight[tap]) * convert<AccumulateType<T>>(from[i]));
    }
  });
}

template <typename T>
void match(const Queue& queue, Places places, int64_t results, const T* values, const T* x, T* to) {
  for_each(queue, results, [=] TT_DEVICE(int64_t i) {
    const int64_t p = i % places.count, n = i / places.count / places.taps, at = places.index[i];
    AccumulateType<T> sum = 0;
    for (int64_t c = 0; c < places.channels && places.holds(at); ++c) {
      const int64_t channel = n * places.channels + c;
      sum += convert<AccumulateType<T>>(values[channel * places.count + p]) *
             convert<AccumulateType<T>>(x[channel * places.length + at]);
    }
    to[i] = convert<T>(sum);
  });
}

}  // namespace

void sample_places(const Tensor& input, const Tensor& index, const Tensor& weight, Tensor& out) {
  const DType dtype = out.dtype();
  const Tensor x = contiguous_as(input, dtype), at = contiguous(index), w = contiguous_as(weight, dtype);
  with_floating(dtype, [&]<typename T>(std::type_identity<T>) {
    sample(queue_of(out), Places(at, input.size(1), input.size(2)), out.numel(), x.data_as<T>(), w.data_as<T>(),
           out.data_as<T>());
  });
}

void spread_places(const Tensor& values, const Tensor& index, const Tensor& weight, int64_t length, Tensor& out) {
  const DType dtype = out.dtype();
  const Tensor from = contiguous_as(values, dtype), at = contiguous(index), w = contiguous_as(weight, dtype);
  const Queue queue = queue_of(out);
  atomic_accumulate(out, [&]<typename C>(C* sums) {
    with_floating(dtype, [&]<typename T>(std::type_identity<T>) {
      if constexpr (std::is_same_v<AccumulateType<T>, C>) {
        spread(queue, Places(at, values.size(1), length), from.numel(), from.data_as<T>(), w.data_as<T>(), sums);
      }
    });
  });
}

void match_places(const Tensor& values, const Tensor& input, const Tensor& index, Tensor& out) {
  const DType dtype = out.dtype();
  const Tensor from = contiguous_as(values, dtype), x = contiguous_as(input, dtype), at = contiguous(index);
  with_floating(dtype, [&]<typename T>(std::type_identity<T>) {
    match(queue_of(out), Places(at, input.size(1), input.size(2)), out.numel(), from.data_as<T>(), x.data_as<T>(),
          out.data_as<T>());
  });
}

}  // namespace tt::cuda
