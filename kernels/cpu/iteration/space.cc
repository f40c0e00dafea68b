#include "kernels/cpu/iteration/space.h"

#include <algorithm>
#include <utility>

namespace tt::cpu {

Space::Space(SizesView of) : sizes(of.begin(), of.end()) {
  for (int64_t size : of) numel *= size;
}

Access Space::access(const Tensor& t) const {
  Access a{static_cast<char*>(t.data()), t.dtype(), Strides(sizes.size(), 0)};
  // From the innermost dimension: what is assigned may have further outer dimensions, of one element.
  const size_t to = sizes.size(), from = t.sizes().size();
  for (size_t d = 1; d <= std::min(to, from); ++d) {
    if (t.sizes()[from - d] != 1) a.strides[to - d] = t.strides()[from - d];
  }
  return a;
}

void Space::swap_dims(absl::Span<Access> operands, size_t a, size_t b) {
  std::swap(sizes[a], sizes[b]);
  for (Access& o : operands) std::swap(o.strides[a], o.strides[b]);
}

void Space::collapse(absl::Span<Access> operands) {
  size_t n = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1) swap_dims(operands, n++, d);
  }
  const Strides& order = operands.back().strides;
  for (size_t i = 1; i < n; ++i) {  // insertion sort: few dimensions, almost always sorted already
    for (size_t d = i; d > 0 && order[d - 1] < order[d]; --d) swap_dims(operands, d - 1, d);
  }
  size_t last = 0;  // the dimension that the next one may merge into
  for (size_t d = 1; d < n; ++d) {
    bool merges = std::all_of(operands.begin(), operands.end(),
                              [&](const Access& o) { return o.strides[last] == o.strides[d] * sizes[d]; });
    if (!merges)
      swap_dims(operands, ++last, d);
    else {
      sizes[last] *= sizes[d];
      for (Access& o : operands) o.strides[last] = o.strides[d];
    }
  }
  const size_t left = n == 0 ? 0 : last + 1;
  sizes.resize(left);
  for (Access& o : operands) o.strides.resize(left);
}

bool Space::is_contiguous(const Access& operand) const {
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && operand.strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

}  // namespace tt::cpu
