#include "engine/schema/meta.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/schema/error.h"

namespace tt {

bool TensorMeta::is_contiguous() const {
  int64_t expected = 1;
  bool dense = true;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return true;  // no elements
    if (sizes[d] == 1) continue;     // its stride is never used
    dense = dense && strides[d] == expected;
    expected *= sizes[d];
  }
  return dense;
}

Sizes contiguous_strides(SizesView sizes) {
  Sizes strides(sizes.size());
  // Unsigned, so that excessive sizes wrap around instead of being undefined; infer() rejects them afterwards.
  uint64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(sizes[d], 1));
  }
  return strides;
}

std::string to_string(SizesView sizes) { return absl::StrCat("[", absl::StrJoin(sizes, ", "), "]"); }

std::string describe(const TensorMeta& meta) {
  return absl::StrCat(message_part(name(meta.dtype)), to_string(SizesView(meta.sizes)));
}

}  // namespace tt
