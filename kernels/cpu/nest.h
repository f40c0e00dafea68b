// Nest<K>: K operands walked together over one index space, a row of the last dimension at a time.
//
// A value on its caller's stack. Offsets and strides are in elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "engine/parallel.h"
#include "engine/rules/meta.h"

namespace tt::cpu {

// How an operand of sizes `from` and those strides lies over `to`, to which it broadcasts.
inline Sizes broadcast_strides(SizesView from, SizesView strides, SizesView to) {
  Sizes result(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) result[lead + d] = from[d] == 1 ? 0 : strides[d];
  return result;
}

template <int K>
class Nest {
 public:
  using Offsets = std::array<int64_t, K>;

  // `strides[k]` says how operand k lies over `sizes`. Neighbours that every operand walks evenly
  // are merged.
  Nest(SizesView sizes, const std::array<SizesView, K>& strides) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) continue;
      Dim dim{sizes[d], {}};
      for (int k = 0; k < K; ++k) dim.strides[k] = strides[k][d];
      append(dim);
    }
    if (dims_.empty()) dims_.push_back({1, {}});
    row_ = dims_.back();
    dims_.pop_back();
    for (const Dim& dim : dims_) rows_ *= dim.size;
  }

  int64_t rows() const { return rows_; }
  int64_t length() const { return row_.size; }
  int64_t stride(int k) const { return row_.strides[k]; }

  // body(offsets, row) for each row in [begin, end), in order.
  template <typename Body>
  void walk(int64_t begin, int64_t end, Body body) const {
    if (begin >= end || row_.size == 0) return;
    absl::InlinedVector<int64_t, 6> index(dims_.size());
    Offsets at{};
    int64_t rest = begin;
    for (size_t d = dims_.size(); d-- > 0;) {
      index[d] = rest % dims_[d].size;
      rest /= dims_[d].size;
      for (int k = 0; k < K; ++k) at[k] += index[d] * dims_[d].strides[k];
    }
    for (int64_t row = begin;; ++row) {
      body(at, row);
      if (row + 1 == end) return;
      for (size_t d = dims_.size(); d-- > 0;) {
        for (int k = 0; k < K; ++k) at[k] += dims_[d].strides[k];
        if (++index[d] < dims_[d].size) break;
        index[d] = 0;
        for (int k = 0; k < K; ++k) at[k] -= dims_[d].size * dims_[d].strides[k];
      }
    }
  }

  // The same for all rows, on as many threads as are free. `body` must not throw.
  template <typename Body>
  void walk_in_parallel(Body body) const {
    int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(row_.size, 1), 1);
    if (rows_ <= grain) return walk(0, rows_, body);
    parallel_for(rows_, grain, [&](int64_t begin, int64_t end) { walk(begin, end, body); });
  }

 private:
  static constexpr int64_t kGrain = 32 * 1024;  // elements worth a thread

  struct Dim {
    int64_t size;
    std::array<int64_t, K> strides;
  };

  void append(const Dim& dim) {
    if (!dims_.empty()) {
      Dim& outer = dims_.back();
      bool even = true;
      for (int k = 0; k < K; ++k) even &= outer.strides[k] == dim.strides[k] * dim.size;
      if (even) {
        outer = {outer.size * dim.size, dim.strides};
        return;
      }
    }
    dims_.push_back(dim);
  }

  absl::InlinedVector<Dim, 6> dims_;
  Dim row_;
  int64_t rows_ = 1;
};

}  // namespace tt::cpu
