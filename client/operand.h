// Operand: a tensor, a number in a tensor's place, or nothing; and what else the functions of
// teletensor/ops.h are made with.
#pragma once

#include <string_view>

#include "absl/types/span.h"
#include "client/session.h"
#include "engine/schema/operand.h"

namespace tt::client {

using Operand = BasicOperand<Tensor>;
using ListArg = BasicListArg<Tensor>;

// The session of the first tensor among `args`. Throws Error (TypeError) where there is none.
Session& session_of(std::string_view op, Args args);
// Calls with this thread's grad mode.
Tensors call_op(Session& session, uint16_t op, Args args, absl::Span<const Tensor> into = {});

// While one lives, what its thread calls is not recorded for backward.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// A tensor from the caller's values, row-major, as many as `sizes` say.
template <typename T>
Tensor tensor(Session& session, absl::Span<const T> values, DType dtype, SizesView sizes, Device device = {}) {
  return session.upload({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, dtype, sizes,
                        device);
}
// The value of a tensor of one element. Waits.
double item(const Tensor& tensor);

}  // namespace tt::client
