// ReducePlan: a tensor's dimensions, split into those that a reduction keeps and those that it reduces.
//
// Offsets and strides are in elements of the input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct Extent {
  int64_t size;
  int64_t stride;
};
using Extents = absl::InlinedVector<Extent, 4>;

enum class Order {
  kAny,      // elements are reduced in the fastest order
  kLogical,  // elements are reduced in row-major order, so that positions are meaningful
};

struct ReducePlan {
  Extents kept;         // outermost first, neighbours merged; the output is contiguous in this order
  Extents reduced;      // in the same order; never empty
  int64_t outputs = 1;  // product of kept sizes
  int64_t count = 1;    // product of reduced sizes: input elements per output

  // `dims` may be negative; empty means all. Throws Error (IndexError, RuntimeError) if a dimension is out of range or
  // repeated.
  ReducePlan(const Tensor& input, absl::Span<const int64_t> dims, Order order);
};

// The plan for an operator's `dim` argument; if it is empty, all dimensions are reduced.
using OptionalDims = std::optional<absl::Span<const int64_t>>;
inline ReducePlan reduction_plan(const Tensor& input, const OptionalDims& dim) {
  return ReducePlan(input, dim.value_or(absl::Span<const int64_t>()), Order::kAny);
}

// The input of any() and all() and their dimensions. An empty list reduces none of the input's: it gets another one of
// size 1, which is reduced.
struct NamedReduction {
  Tensor input;
  absl::InlinedVector<int64_t, 6> dims;  // empty: all

  NamedReduction(const Tensor& given, const OptionalDims& dim) : input(given) {
    if (dim) dims.assign(dim->begin(), dim->end());
    if (!dim || !dim->empty()) return;
    dims.push_back(given.dim());
    Geometry wide{given.sizes(), given.strides(), given->offset};
    wide.sizes.push_back(1);
    wide.strides.push_back(1);
    input = view_of(given, wide);
  }
};

// Iterates through extents in row-major order.
class ExtentIterator {
 public:
  ExtentIterator(absl::Span<const Extent> extents, int64_t start) : extents_(extents), index_(extents.size()) {
    for (size_t d = extents.size(); start > 0 && d-- > 0;) {  // `start` is 0 if an extent is empty
      index_[d] = start % extents[d].size;
      start /= extents[d].size;
      offset_ += index_[d] * extents[d].stride;
    }
  }
  int64_t offset() const { return offset_; }
  void next() {
    for (size_t d = extents_.size(); d-- > 0;) {
      offset_ += extents_[d].stride;
      if (++index_[d] < extents_[d].size) return;
      offset_ -= extents_[d].size * extents_[d].stride;
      index_[d] = 0;
    }
  }

 private:
  absl::Span<const Extent> extents_;
  absl::InlinedVector<int64_t, 4> index_;
  int64_t offset_ = 0;
};

// Appends an extent that is inner to the last one. Merges the two if one constant stride covers both.
inline void append_extent(Extents& extents, Extent next) {
  if (next.size == 1) return;
  if (!extents.empty() && extents.back().stride == next.stride * next.size) {
    extents.back() = {extents.back().size * next.size, next.stride};
  } else {
    extents.push_back(next);
  }
}

inline ReducePlan::ReducePlan(const Tensor& input, absl::Span<const int64_t> dims, Order order) {
  const size_t ndim = input.sizes().size();
  absl::InlinedVector<bool, 8> is_reduced(ndim, dims.empty());
  for (int64_t dim : dims) {
    int64_t d = shape_rules::wrap_dim(dim, input.dim());
    if (ndim == 0) continue;  // a zero-dimensional tensor accepts dim 0 and -1
    check(!is_reduced[d], "dim ", d, " appears multiple times in the list of dims");
    is_reduced[d] = true;
  }
  Extents unmerged;
  for (size_t d = 0; d < ndim; ++d) {
    Extent extent{input.sizes()[d], input.strides()[d]};
    (is_reduced[d] ? count : outputs) *= extent.size;
    if (is_reduced[d]) {
      unmerged.push_back(extent);
    } else {
      append_extent(kept, extent);
    }
  }
  if (order == Order::kAny) {
    std::stable_sort(unmerged.begin(), unmerged.end(),
                     [](const Extent& a, const Extent& b) { return a.stride > b.stride; });
  }
  for (const Extent& extent : unmerged) append_extent(reduced, extent);
  if (reduced.empty()) reduced.push_back({1, 1});
}

}  // namespace tt
