// Weighted sums of entries at given positions of each channel, and their gradients, as in
// kernels/cpu/index/weighted_gather.cc. One thread computes each result.
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/kernels.h"

namespace tt::cuda {
namespace {

// Indices (N, K, P) into channels (N, C, length, inner).
struct Positions {
  const int64_t* index;
  int64_t channels, taps, count, length, inner;

  // `entries` has the shape (N, C, L) or (N, C, L, I).
  Positions(const Tensor& contiguous_index, const Tensor& entries, int64_t length)
      : index(contiguous_index.data_as<int64_t>()),
        channels(entries.size(1)),
        taps(contiguous_index.size(1)),
        count(contiguous_index.size(2)),
        length(length),
        inner(entries.dim() == 4 ? entries.size(3) : 1) {}
  // Index of tap k of position p of batch entry n in the indices and weights.
  TT_DEVICE int64_t tap(int64_t n, int64_t k, int64_t p) const { return (n * taps + k) * count + p; }
  TT_DEVICE bool inside(int64_t at) const { return at >= 0 && at < length; }
  // Offset of element `i` of entry `at` of a channel of the input.
  TT_DEVICE int64_t entry(int64_t channel, int64_t at, int64_t i) const { return (channel * length + at) * inner + i; }
};

// Coordinates of element i of a tensor (N, C, P, I); `channel` is n * channels + c.
struct Result {
  int64_t inner, p, channel, n;

  TT_DEVICE Result(const Positions& positions, int64_t i)
      : inner(i % positions.inner),
        p(i / positions.inner % positions.count),
        channel(i / positions.inner / positions.count),
        n(channel / positions.channels) {}
};

template <typename T>
void gather(const Queue& queue, Positions positions, int64_t results, const T* x, const T* weight, T* to) {
  for_each(queue, results, [=] TT_DEVICE(int64_t i) {
    const Result r(positions, i);
    AccumulateType<T> sum = 0;
    for (int64_t k = 0; k < positions.taps; ++k) {
      const int64_t tap = positions.tap(r.n, k, r.p), at = positions.index[tap];
      if (!positions.inside(at)) continue;
      sum += convert<AccumulateType<T>>(weight[tap]) *
             convert<AccumulateType<T>>(x[positions.entry(r.channel, at, r.inner)]);
    }
    to[i] = convert<T>(sum);
  });
}

template <typename T>
void scatter(const Queue& queue, Positions positions, int64_t values, const T* from, const T* weight,
             AccumulateType<T>* sums) {
  for_each(queue, values, [=] TT_DEVICE(int64_t i) {
    const Result r(positions, i);
    for (int64_t k = 0; k < positions.taps; ++k) {
      const int64_t tap = positions.tap(r.n, k, r.p), at = positions.index[tap];
      if (!positions.inside(at)) continue;
      atomic_add(sums + positions.entry(r.channel, at, r.inner),
                 convert<AccumulateType<T>>(weight[tap]) * convert<AccumulateType<T>>(from[i]));
    }
  });
}

template <typename T>
void products(const Queue& queue, Positions positions, int64_t results, const T* values, const T* x, T* to) {
  for_each(queue, results, [=] TT_DEVICE(int64_t i) {
    const int64_t p = i % positions.count, n = i / positions.count / positions.taps, at = positions.index[i];
    AccumulateType<T> sum = 0;
    for (int64_t c = 0; c < positions.channels && positions.inside(at); ++c) {
      const int64_t channel = n * positions.channels + c;
      for (int64_t j = 0; j < positions.inner; ++j) {
        sum += convert<AccumulateType<T>>(values[(channel * positions.count + p) * positions.inner + j]) *
               convert<AccumulateType<T>>(x[positions.entry(channel, at, j)]);
      }
    }
    to[i] = convert<T>(sum);
  });
}

}  // namespace

void weighted_gather(const Tensor& input, const Tensor& index, const Tensor& weight, Tensor& out) {
  const DType dtype = out.dtype();
  const Tensor x = contiguous_as(input, dtype), at = contiguous(index), w = contiguous_as(weight, dtype);
  with_floating(dtype, [&]<typename T>(std::type_identity<T>) {
    gather(queue_of(out), Positions(at, input, input.size(2)), out.numel(), x.data_as<T>(), w.data_as<T>(),
           out.data_as<T>());
  });
}

void weighted_gather_input_grad(const Tensor& values, const Tensor& index, const Tensor& weight, int64_t length,
                                Tensor& out) {
  const DType dtype = out.dtype();
  const Tensor from = contiguous_as(values, dtype), at = contiguous(index), w = contiguous_as(weight, dtype);
  const Queue queue = queue_of(out);
  atomic_accumulate(out, [&]<typename C>(C* sums) {
    with_floating(dtype, [&]<typename T>(std::type_identity<T>) {
      if constexpr (std::is_same_v<AccumulateType<T>, C>) {
        scatter(queue, Positions(at, values, length), from.numel(), from.data_as<T>(), w.data_as<T>(), sums);
      }
    });
  });
}

void weighted_gather_weight_grad(const Tensor& values, const Tensor& input, const Tensor& index, Tensor& out) {
  const DType dtype = out.dtype();
  const Tensor from = contiguous_as(values, dtype), x = contiguous_as(input, dtype), at = contiguous(index);
  with_floating(dtype, [&]<typename T>(std::type_identity<T>) {
    products(queue_of(out), Positions(at, input, input.size(2)), out.numel(), from.data_as<T>(), x.data_as<T>(),
             out.data_as<T>());
  });
}

}  // namespace tt::cuda
