// DropoutScale: dropout's scaling, input / (1 - p) where kept and 0 elsewhere, as a pointwise step for the backend's
// chain kernel.
#pragma once

#include <array>

#include "engine/dispatch/chain.h"
#include "engine/schema/op_ids.h"

namespace tt {

// The tensors must outlive this object.
class DropoutScale {
 public:
  DropoutScale(const Tensor& input, const Tensor& kept, double p)
      : args_{Arg(input.get()), Arg(kept.get()), Arg(p)},
        step_{find_op(op_id::kScaleKept), absl::MakeConstSpan(args_), input.dtype()} {}
  DropoutScale(const DropoutScale&) = delete;
  DropoutScale& operator=(const DropoutScale&) = delete;

  absl::Span<const ChainStep> steps() const { return absl::MakeConstSpan(&step_, 1); }

 private:
  std::array<Arg, 3> args_;
  ChainStep step_;
};

}  // namespace tt
