#include "engine/composites.h"

#include <algorithm>
#include <numeric>

#include "engine/rules/shape_rules.h"

namespace tt {

namespace composites {

Sizes range(int64_t n) {
  Sizes list(static_cast<size_t>(n));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

Sizes dims_except(int64_t n, SizesView dims) {
  Sizes rest = range(n);
  for (int64_t d : dims) rest.erase(std::find(rest.begin(), rest.end(), shape_rules::wrap_dim(d, n)));
  return rest;
}

Sizes with_entry(SizesView list, int64_t index, int64_t value) {
  Sizes changed(list.begin(), list.end());
  changed[shape_rules::wrap_dim(index, static_cast<int64_t>(list.size()))] = value;
  return changed;
}

Sizes without_entry(SizesView list, int64_t index) {
  Sizes changed(list.begin(), list.end());
  changed.erase(changed.begin() + shape_rules::wrap_dim(index, static_cast<int64_t>(list.size())));
  return changed;
}

Sizes insert_entry(SizesView list, int64_t index, int64_t value) {
  Sizes changed(list.begin(), list.end());
  changed.insert(changed.begin() + shape_rules::wrap_dim(index, static_cast<int64_t>(list.size()) + 1), value);
  return changed;
}

int64_t product(SizesView list) {
  return std::accumulate(list.begin(), list.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace composites
}  // namespace tt
