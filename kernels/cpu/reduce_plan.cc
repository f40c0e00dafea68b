#include "kernels/cpu/reduce_plan.h"

#include <algorithm>

#include "engine/rules/error.h"
#include "engine/rules/shape_rules.h"

namespace tt::cpu {

namespace {

// Appends an extent that lies inside the last one, as one where they are evenly spaced.
void append(Extents& extents, Extent next) {
  if (next.size == 1) return;
  if (!extents.empty() && extents.back().stride == next.stride * next.size) {
    extents.back() = {extents.back().size * next.size, next.stride};
  } else {
    extents.push_back(next);
  }
}

}  // namespace

ReducePlan::ReducePlan(const Tensor& input, absl::Span<const int64_t> dims, Order order) {
  const size_t ndim = input.sizes().size();
  absl::InlinedVector<bool, 8> goes(ndim, dims.empty());
  for (int64_t dim : dims) {
    int64_t d = shape_rules::wrap_dim(dim, input.dim());
    if (ndim == 0) continue;  // a zero-dim tensor takes dim 0 and -1
    check(!goes[d], "dim ", d, " appears multiple times in the list of dims");
    goes[d] = true;
  }
  Extents unmerged;
  for (size_t d = 0; d < ndim; ++d) {
    Extent extent{input.sizes()[d], input.strides()[d]};
    (goes[d] ? count : outputs) *= extent.size;
    if (goes[d]) {
      unmerged.push_back(extent);
    } else {
      append(kept, extent);
    }
  }
  if (order == Order::kAny) {
    std::stable_sort(unmerged.begin(), unmerged.end(),
                     [](const Extent& a, const Extent& b) { return a.stride > b.stride; });
  }
  for (const Extent& extent : unmerged) append(reduced, extent);
  if (reduced.empty()) reduced.push_back({1, 1});
}

}  // namespace tt::cpu
