// Targets: the target classes of nll_loss and cross_entropy.
#pragma once

#include <algorithm>

#include "absl/types/span.h"
#include "kernels/common/nn/likelihoods.h"
#include "kernels/cpu/iteration/contiguous.h"

namespace tt::cpu {

// The targets of a loss over classes, and how its scores are laid out. The constructor throws Error (IndexError) if a
// target is out of range.
struct Targets {
  ClassShape shape;
  Tensor target;
  int64_t ignore;

  Targets(SizesView sizes, const Tensor& targets, int64_t ignore_index, const Tensor& weight)
      : shape(sizes, targets, weight), target(contiguous_as(targets, DType::kInt64)), ignore(ignore_index) {
    const absl::Span<const int64_t> all(target.data_as<int64_t>(), target.numel());
    const bool ignores = ignore != kNoTargetIgnored;
    const auto is_bad = [&](int64_t t) { return !(ignores & (t == ignore)) & ((t < 0) | (t >= shape.classes)); };
    int64_t bad = 0;  // counted without an early exit, so that the loop vectorises
    for (int64_t t : all) bad += is_bad(t);
    if (bad > 0)
      fail(ErrorKind::kIndex, "Target ", *std::find_if(all.begin(), all.end(), is_bad), " is out of bounds.");
  }
  // Calls f(position among the targets, offset in the input, class) for every target that is not ignored.
  template <typename F>
  void for_each(F&& f) const {
    const int64_t* classes = target.data_as<int64_t>();
    for (int64_t n = 0, i = 0; n < shape.samples; ++n) {
      for (int64_t at = 0; at < shape.space; ++at, ++i) {
        const int64_t t = classes[i];
        if (t != ignore) f(i, (n * shape.classes + t) * shape.space + at, t);
      }
    }
  }
};

}  // namespace tt::cpu
