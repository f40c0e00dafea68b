// Operand: a tensor, a number in a tensor's place, or nothing; and what else the functions of
// teletensor/ops.h are made with.
#pragma once

#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "client/session.h"

namespace tt::client {

class Operand {
 public:
  Operand() = default;
  Operand(const Tensor& t) : arg_(t.get()) {}  // NOLINT: reads like a tensor
  Operand(const Scalar& s) : arg_(s) {}        // NOLINT
  Operand(double v) : arg_(v) {}               // NOLINT
  Operand(int64_t v) : arg_(v) {}              // NOLINT
  Operand(int v) : arg_(int64_t{v}) {}         // NOLINT
  Operand(bool v) : arg_(v) {}                 // NOLINT
  const Arg& arg() const { return arg_; }

 private:
  Arg arg_;  // borrows: an Operand lives as long as the call's full expression
};

// A list of tensors as an Arg.
class ListArg {
 public:
  explicit ListArg(absl::Span<const Tensor> list) {
    for (const Tensor& t : list) metas_.push_back(t.get());
  }
  Arg arg() const { return Arg(absl::Span<const TensorMeta* const>(metas_)); }

 private:
  absl::InlinedVector<const TensorMeta*, 8> metas_;
};

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
