// Autocast: what mixed precision makes of an operator's arguments before it is called.
//
// Of the calling thread, by the tensors' device: products and recurrent layers take the lower precision, what sums or
// exponentiates takes float32, what wants one dtype takes the widest that it is given. float64 and integers stay.
#pragma once

#include "client/session.h"
#include "engine/schema/op.h"
#include "python/bindings/mode.h"

namespace tt::python {

// Arguments after the casts; owns what was cast for them.
class AutocastArgs {
 public:
  // Requires Mode::current().autocast(). Throws what a cast throws.
  AutocastArgs(const Op& op, Args args, client::Session& session);
  Args args() const { return args_; }

 private:
  const TensorMeta* cast(const TensorMeta* tensor, DType dtype, client::Session& session);

  absl::InlinedVector<Arg, 8> args_;
  std::vector<client::Tensor> made_;
  std::vector<std::vector<const TensorMeta*>> lists_;
};

}  // namespace tt::python
