// Autocast: casts an operator's arguments for mixed precision before the call.
//
// Applies to the calling thread, per device type of the tensors. Matrix products, convolutions and recurrent layers use
// the lower precision. Sums and exponentials use float32. Operators whose arguments must have one dtype use the widest
// dtype of their arguments. float64 and integers are not cast.
#pragma once

#include "client/session.h"
#include "engine/schema/op.h"
#include "python/bindings/mode.h"

namespace tt::python {

// The arguments after casting; owns the cast tensors.
class AutocastArgs {
 public:
  // Requires Mode::current().autocast(). Throws the errors of the casts.
  AutocastArgs(const Op& op, Args args, client::Session& session);
  Args args() const { return args_; }

 private:
  const TensorMeta* cast(const TensorMeta* tensor, DType dtype, client::Session& session);

  absl::InlinedVector<Arg, 8> args_;
  std::vector<client::Tensor> made_;
  std::vector<std::vector<const TensorMeta*>> lists_;
};

}  // namespace tt::python
