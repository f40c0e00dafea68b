// Casts between two contiguous tensors. For .cu files only.
#pragma once

#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {

// Casts n adjacent elements. Each thread casts the number of elements that takes 16 bytes in the wider type.
template <typename From, typename To>
struct Cast {
  static constexpr int kLanes = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  int64_t n;
  const From* from;
  To* to;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t at = i * kLanes;
    if (at + kLanes > n) {
      for (int64_t j = at; j < n; ++j) to[j] = convert<To>(from[j]);
      return;
    }
    const auto values = load_vector<From, kLanes>(from + at);
    using C = std::conditional_t<kIsHalf<From>, float, From>;
    store_vector(to + at, vector_of<To>(lanes_of<C>(values)));
  }
};

// Casts src to dst. Requires contiguous tensors at addresses aligned to 16 bytes.
template <typename From, typename To>
void cast_vectors(const Queue& queue, const Tensor& src, const Tensor& dst) {
  const Cast<From, To> cast{dst.numel(), src.data_as<From>(), dst.data_as<To>()};
  for_each(queue, (cast.n + cast.kLanes - 1) / cast.kLanes, cast);
}

}  // namespace tt::cuda
