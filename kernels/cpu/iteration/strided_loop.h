// StridedLoop<K>: iterates over K operands with a common index space, one row of the last dimension at a time.
//
// A plain value, created on its caller's stack. Offsets and strides are in elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "engine/device/parallel.h"
#include "engine/schema/meta.h"
#include "kernels/common/iteration/dims.h"

namespace tt::cpu {

template <int K>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, K>;

  // `strides[k]` contains the strides of operand k over `sizes`. Neighbouring dimensions that every operand traverses
  // with one constant stride are merged.
  StridedLoop(SizesView sizes, const std::array<SizesView, K>& strides) {
    dims_ = merged_dims<K>(sizes, strides);
    if (dims_.empty()) dims_.push_back({1, {}});
    row_ = dims_.back();
    dims_.pop_back();
    for (const Dim<K>& dim : dims_) rows_ *= dim.size;
  }

  int64_t rows() const { return rows_; }
  int64_t length() const { return row_.size; }
  int64_t stride(int k) const { return row_.strides[k]; }

  // Calls body(offsets, row) for each row in [begin, end), in order.
  template <typename Body>
  void for_rows(int64_t begin, int64_t end, Body body) const {
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

  // Calls body(offsets, row) for all rows, in parallel. `body` must not throw.
  template <typename Body>
  void parallel_for_rows(Body body) const {
    int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(row_.size, 1), 1);
    if (rows_ <= grain) return for_rows(0, rows_, body);
    parallel_for(rows_, grain, [&](int64_t begin, int64_t end) { for_rows(begin, end, body); });
  }

  // Calls body(offsets, length) for pieces of rows, for bodies that do not need whole rows.
  template <typename Body>
  void parallel_for_row_pieces(Body body) const {
    const int64_t cuts = rows_ < num_threads() ? std::min<int64_t>(row_.size / kGrain, num_threads()) : 1;
    if (cuts > 1) return parallel_for_split_rows(cuts, body);
    parallel_for_rows([&](const Offsets& at, int64_t) { body(at, row_.size); });
  }

 private:
  static constexpr int64_t kGrain = 32 * 1024;  // minimum number of elements per thread

  // Splits each row into `cuts` pieces, so that all threads have work if there are few, long rows.
  template <typename Body>
  void parallel_for_split_rows(int64_t cuts, Body body) const {
    parallel_for(rows_ * cuts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t cut = piece % cuts, first = row_.size * cut / cuts, last = row_.size * (cut + 1) / cuts;
        for_rows(piece / cuts, piece / cuts + 1, [&](Offsets at, int64_t) {
          for (int k = 0; k < K; ++k) at[k] += first * row_.strides[k];
          body(at, last - first);
        });
      }
    });
  }

  absl::InlinedVector<Dim<K>, 6> dims_;
  Dim<K> row_;
  int64_t rows_ = 1;
};

}  // namespace tt::cpu
