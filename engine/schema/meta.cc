#include "engine/schema/meta.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/schema/error.h"

namespace tt {

bool TensorMeta::is_contiguous() const {
  const SizesView own = sizes, steps = strides;
  SymInt expected = 1;
  for (size_t d = own.size(); d-- > 0;) {
    if (!surely_equal(steps[d], expected)) {
      if (hint_of(own[d]) == 1) continue;  // its stride is never used
      if (hint_of(steps[d]) != hint_of(expected) || steps[d] != expected)
        return std::any_of(own.begin(), own.end(), [](SymInt size) { return hint_of(size) == 0; });
    }
    expected = wrapped_product(expected, larger(own[d], 1));
  }
  return true;
}

bool surely_equal(SizesView a, SizesView b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](SymInt x, SymInt y) { return surely_equal(x, y); });
}

Sizes contiguous_strides(SizesView sizes) {
  Sizes strides(sizes.size());
  SymInt* const steps = strides.data();
  SymInt step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    steps[d] = step;
    step = wrapped_product(step, larger(sizes[d], 1));
  }
  return strides;
}

std::string to_string(SizesView sizes) {
  const auto append = [](std::string* out, SymInt size) { absl::StrAppend(out, text_of(size)); };
  return absl::StrCat("[", absl::StrJoin(sizes, ", ", append), "]");
}

std::string describe(const TensorMeta& meta) {
  return absl::StrCat(message_part(name(meta.dtype)), to_string(SizesView(meta.sizes)));
}

}  // namespace tt
