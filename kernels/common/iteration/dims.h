// Dims: strides of several operands over a common index space, with as few dimensions as possible.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "engine/schema/meta.h"

namespace tt {

// Returns the strides of an operand of sizes `from` when it is broadcast to sizes `to`: 0 along broadcast dimensions.
inline Sizes broadcast_strides(SizesView from, SizesView strides, SizesView to) {
  Sizes result(to.size(), 0);
  // From the innermost dimension: what is assigned may have further outer dimensions, of one element.
  for (size_t d = 1; d <= std::min(from.size(), to.size()); ++d) {
    result[to.size() - d] = from[from.size() - d] == 1 ? 0 : strides[from.size() - d];
  }
  return result;
}

template <int K>
struct Dim {
  int64_t size;
  std::array<int64_t, K> strides;  // per operand, in elements
};

// `strides[k]` contains the strides of operand k over `sizes`. The result is ordered outermost first, omits dimensions
// of size 1, and merges neighbouring dimensions that every operand traverses with one constant stride.
template <int K>
absl::InlinedVector<Dim<K>, 6> merged_dims(SizesView sizes, const std::array<SizesView, K>& strides) {
  absl::InlinedVector<Dim<K>, 6> dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    Dim<K> dim{sizes[d], {}};
    bool even = !dims.empty();
    for (int k = 0; k < K; ++k) {
      dim.strides[k] = strides[k][d];
      even = even && dims.back().strides[k] == dim.strides[k] * dim.size;
    }
    if (even) {
      dim.size *= dims.back().size;
      dims.back() = dim;
    } else {
      dims.push_back(dim);
    }
  }
  return dims;
}

}  // namespace tt
