// The dimensions that assignments through an index (`x[i] = y`) drop, which operator index_put does not accept.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/schema/meta.h"

namespace tt {

// The outer dimensions that `values` has in excess of the elements that `indices` (null: all of a dimension) select
// from `input`. Depends on numbers of dimensions, not on sizes: traced programs run with other sizes.
inline Sizes outer_dims(const TensorMeta& input, absl::Span<const TensorMeta* const> indices,
                        const TensorMeta& values) {
  SymInt kept = input.dim(), broadcast = 0;
  for (const TensorMeta* index : indices) {
    if (index == nullptr) continue;
    const bool is_mask = index->dtype == DType::kBool || index->dtype == DType::kUInt8;
    kept -= is_mask ? index->dim() : 1;
    broadcast = larger(broadcast, is_mask ? 1 : index->dim());
  }
  Sizes dims;
  for (int64_t d = 0; d < values.dim() - kept - broadcast; ++d) dims.push_back(d);
  return dims;
}

}  // namespace tt
