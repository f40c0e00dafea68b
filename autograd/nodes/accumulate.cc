#include "autograd/nodes/accumulate.h"

#include <optional>

#include "engine/dispatch/ops.h"
#include "engine/program/deferred_calls.h"
#include "engine/schema/op_ids.h"

namespace tt::autograd {

void accumulate(Tensor& sum, Tensor gradient, bool in_place, DeferredCalls* deferred) {
  if (!sum) {
    sum = std::move(gradient);
    return;
  }
  std::optional<DeferredCalls::Use> use;
  if (deferred != nullptr) {
    use.emplace(deferred);
    in_place = in_place && !deferred->is_deferred(gradient);  // a write would execute what is deferred
  }
  if (in_place && sum.dtype() == gradient.dtype() && sum.sizes() == gradient.sizes()) {
    const Arg args[] = {Arg(sum.get()), Arg(gradient.get()), Arg(int64_t{1})};
    ops::call(op_id::kAdd, args, absl::Span<const Tensor>(&sum, 1));
  } else {
    sum = ops::add(sum, gradient, int64_t{1});
  }
}

}  // namespace tt::autograd
