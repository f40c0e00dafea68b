// StridedLoop<K>: K operands walked together over one index space, a row of the last dimension at a time.
//
// A value on its caller's stack. Offsets and strides are in elements.
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

  // `strides[k]` says how operand k lies over `sizes`. Neighbours that every operand walks evenly
  // are merged.
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

  // body(offsets, length) for pieces of rows, for elements that do not need their row whole.
  template <typename Body>
  void walk_pieces_in_parallel(Body body) const {
    const int64_t cuts = rows_ < num_threads() ? std::min<int64_t>(row_.size / kGrain, num_threads()) : 1;
    if (cuts > 1) return walk_cut_rows(cuts, body);
    walk_in_parallel([&](const Offsets& at, int64_t) { body(at, row_.size); });
  }

 private:
  static constexpr int64_t kGrain = 32 * 1024;  // elements worth a thread

  // The same where there are too few rows for all threads and they are long: each in so many pieces.
  template <typename Body>
  void walk_cut_rows(int64_t cuts, Body body) const {
    parallel_for(rows_ * cuts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t cut = piece % cuts, first = row_.size * cut / cuts, last = row_.size * (cut + 1) / cuts;
        walk(piece / cuts, piece / cuts + 1, [&](Offsets at, int64_t) {
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
