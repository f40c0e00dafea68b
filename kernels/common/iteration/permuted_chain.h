// Pointwise loops over a result that is not in row-major order, as with channels last: the dimensions
// of all operands are permuted so that the result becomes contiguous.
#pragma once

#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "engine/dispatch/chain.h"
#include "engine/schema/layout.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/dims.h"

namespace tt {

// If `out` is dense and not contiguous, calls run(steps, out) with views that are permuted, and returns true.
inline bool run_permuted(absl::Span<const ChainStep> steps, const Tensor& out,
                         absl::FunctionRef<void(absl::Span<const ChainStep>, const Tensor&)> run) {
  if (out.is_contiguous() || !is_dense(out.sizes(), out.strides())) [[likely]]
    return false;
  absl::InlinedVector<size_t, 5> order(out.sizes().size());  // the outermost first
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return out.strides()[a] > out.strides()[b]; });
  const auto permuted = [&](const Tensor& t) {
    const Sizes strides = broadcast_strides(t.sizes(), t.strides(), out.sizes());
    Geometry view{{}, {}, t->offset, true};
    for (size_t d : order) {
      view.sizes.push_back(out.sizes()[d]);
      view.strides.push_back(strides[d]);
    }
    return view_of(t, view);
  };
  Tensors kept;
  absl::InlinedVector<absl::InlinedVector<Arg, 4>, kShortChain.steps> args;
  for (const ChainStep& step : steps) {
    absl::InlinedVector<Arg, 4>& list = args.emplace_back(step.args.begin(), step.args.end());
    for (Arg& arg : list) {
      if (arg.kind != Arg::Kind::kTensor || arg.tensor->dim() == 0) continue;  // one value for all
      kept.push_back(permuted(Tensor::from(arg.tensor)));
      arg = Arg(kept.back().get());
    }
  }
  absl::InlinedVector<ChainStep, kShortChain.steps> as_views;
  Tensors results;
  results.reserve(steps.size());  // pointers into it must stay valid
  for (size_t i = 0; i < steps.size(); ++i) {
    as_views.push_back({steps[i].op, args[i], steps[i].compute});
    if (steps[i].kept == nullptr) continue;
    results.push_back(permuted(*steps[i].kept));
    as_views.back().kept = &results.back();
  }
  run(as_views, permuted(out));
  return true;
}

}  // namespace tt
