// DimIterator: iterates over the one-dimensional slices of tensors along a dimension, for kernels that compute each
// slice independently.
#pragma once

#include "engine/schema/rules/shape_rules.h"
#include "engine/tensor/tensor.h"
#include "kernels/cpu/iteration/strided_loop.h"

namespace tt::cpu {

// Iterates over K tensors whose sizes are equal except along `dim`. The elements of operand k's slice are `stride(k)`
// apart.
template <int K>
class DimIterator {
 public:
  DimIterator(const std::array<const Tensor*, K>& tensors, int64_t dim)
      : dim_(shape_rules::wrap_dim(dim, tensors[0]->dim())), loop_(make_loop(tensors, dim_)) {
    for (int k = 0; k < K; ++k) {
      length_[k] = tensors[k]->dim() == 0 ? 1 : tensors[k]->size(dim_);
      stride_[k] = tensors[k]->dim() == 0 ? 1 : tensors[k]->stride(dim_);
    }
  }
  int64_t count() const { return loop_.rows() * loop_.length(); }
  int64_t length(int k) const { return length_[k]; }
  int64_t stride(int k) const { return stride_[k]; }

  // Calls body(each) in parallel, once per block of a thread's slices (parallel.h). each(f) calls f(offsets, index) for
  // every slice of the block. A body can thus create buffers that its slices reuse, but not one per thread.
  template <typename Body>
  void run(Body body) const {
    int64_t work = std::max<int64_t>(length_[0], 1);
    parallel_for(count(), std::max<int64_t>(kGrain / work, 1),
                 [&](int64_t begin, int64_t end) { body([&](auto line) { for_slices(begin, end, line); }); });
  }

 private:
  static constexpr int64_t kGrain = 8 * 1024;
  using Offsets = typename StridedLoop<K>::Offsets;

  // Loops over all dimensions except `dim`.
  static StridedLoop<K> make_loop(const std::array<const Tensor*, K>& tensors, int64_t dim) {
    Sizes sizes;
    std::array<Sizes, K> strides;
    std::array<SizesView, K> views;
    for (int64_t d = 0; d < tensors[0]->dim(); ++d) {
      if (d == dim) continue;
      sizes.push_back(tensors[0]->size(d));
      for (int k = 0; k < K; ++k) strides[k].push_back(tensors[k]->stride(d));
    }
    for (int k = 0; k < K; ++k) views[k] = strides[k];
    return StridedLoop<K>(sizes, views);
  }

  template <typename Line>
  void for_slices(int64_t begin, int64_t end, Line line) const {
    const int64_t n = loop_.length();
    if (begin >= end) return;
    loop_.for_rows(begin / n, (end - 1) / n + 1, [&](const Offsets& at, int64_t row) {
      const int64_t from = std::max<int64_t>(begin - row * n, 0), to = std::min(end - row * n, n);
      for (int64_t i = from; i < to; ++i) {
        Offsets offsets = at;
        for (int k = 0; k < K; ++k) offsets[k] += i * loop_.stride(k);
        line(offsets, row * n + i);
      }
    });
  }

  int64_t dim_;
  StridedLoop<K> loop_;
  std::array<int64_t, K> length_, stride_;
};

}  // namespace tt::cpu
