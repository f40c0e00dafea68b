// Operand: a tensor, a number used as a tensor, or nothing; and helpers for the functions of teletensor/ops.h.
#pragma once

#include <string_view>

#include "absl/types/span.h"
#include "client/session/session.h"
#include "engine/schema/operand.h"

namespace tt::client {

using Operand = BasicOperand<Tensor>;
using ListArg = BasicListArg<Tensor>;

// Returns the session of the first tensor in `args`. Throws Error (TypeError) if there is none.
Session& session_of(std::string_view op, Args args);
// Calls an operator with this thread's grad mode and autocast (client/session/autocast.h).
Tensors call_op(Session& session, uint16_t op, Args args, absl::Span<const Tensor> into = {});

// While an instance exists, calls of its thread are not recorded for backward.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// Creates a tensor from row-major `values`, whose number must match `sizes`.
template <typename T>
Tensor tensor(Session& session, absl::Span<const T> values, DType dtype, SizesView sizes, Device device = {}) {
  return session.upload({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, dtype, sizes,
                        device);
}
// Returns the value of a one-element tensor. Waits.
double item(const Tensor& tensor);

}  // namespace tt::client
