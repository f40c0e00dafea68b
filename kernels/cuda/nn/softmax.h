// Functions that softmax and cross entropy share: the layout of rows, and the sum of a row's exponentials without
// overflow. Rows that do not fit in registers use "Online normalizer calculation for softmax" (Milakov and Gimelshein,
// 2018).
#pragma once

#include <limits>

#include "kernels/common/iteration/dim_split.h"
#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/launch/row.h"

namespace tt::cuda {

// Rows along the dimension of softmax, whose size is n.
struct SoftmaxRows : DimSplit {
  using DimSplit::DimSplit;

  int64_t rows() const { return outer * inner; }
  // The offset at which row `r` starts; its elements are `inner` apart.
  TT_FUNCTION int64_t start(int64_t r) const { return inner == 1 ? r * n : r / inner * n * inner + r % inner; }
  // Whether to use one thread per row. Rows must be interleaved, so that adjacent threads read adjacent elements.
  bool columns() const { return inner > 1 && rows() >= kMinColumns; }

  static constexpr int64_t kMinColumns = 2048;
};

// The largest element so far, and the sum of exp(x - largest) so far.
template <typename C>
struct Running {
  C most = -std::numeric_limits<C>::infinity();
  C sum = 0;

  TT_FUNCTION void add(C x) {
    if (x > most) {
      sum = sum * math::exp(most - x) + 1;
      most = x;
    } else if (x != -std::numeric_limits<C>::infinity()) {
      sum += math::exp(x - most);
    }
  }
};
struct Join {
  template <typename C>
  TT_FUNCTION Running<C> operator()(const Running<C>& a, const Running<C>& b) const {
    const C most = a.most > b.most ? a.most : b.most;
    return {most, scaled(a, most) + scaled(b, most)};
  }
  template <typename C>
  TT_FUNCTION static C scaled(const Running<C>& x, C most) {
    return x.most == most ? x.sum : x.sum * math::exp(x.most - most);
  }
};
struct Larger {
  template <typename C>
  TT_FUNCTION C operator()(C a, C b) const {
    return b > a ? b : a;  // ignores NaN, because a NaN makes the sum of exponentials, and therefore the result, NaN
  }
};

template <typename C, typename G, typename R>
TT_DEVICE Running<C> sum_exponentials(G& group, const R& row) {
  Running<C> all;
  if (row.fits()) {
    for_each_element([&](int64_t, C x) { all.most = Larger()(all.most, x); }, row);
    all.most = group.reduce(all.most, Larger());
    for_each_element([&](int64_t, C x) { all.sum += math::exp(x - all.most); }, row);
    all.sum = group.reduce(all.sum, Add());
  } else {
    for_each_element([&](int64_t, C x) { all.add(x); }, row);
    all = group.reduce(all, Join());
    if (math::isinf(all.most)) all.sum = std::numeric_limits<C>::quiet_NaN();
  }
  return all;
}

}  // namespace tt::cuda
