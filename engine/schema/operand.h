// BasicOperand and BasicListArg: what a typed operator function takes, as the Arg that it passes on. For the client's
// tensors and the engine's.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/scalar.h"

namespace tt {

// A tensor, a number in a tensor's place, or nothing. Borrows: it lives as long as the call's full expression.
template <typename Tensor>
class BasicOperand {
 public:
  BasicOperand() = default;
  BasicOperand(const Tensor& t) : arg_(t.get()) {}  // NOLINT: reads like a tensor
  BasicOperand(const Scalar& s) : arg_(s) {}        // NOLINT
  BasicOperand(double v) : arg_(v) {}               // NOLINT
  BasicOperand(int64_t v) : arg_(v) {}              // NOLINT
  BasicOperand(int v) : arg_(int64_t{v}) {}         // NOLINT
  BasicOperand(bool v) : arg_(v) {}                 // NOLINT
  explicit BasicOperand(const Arg& arg) : arg_(arg) {}
  const Arg& arg() const { return arg_; }
  bool has_value() const { return !arg_.is_none(); }

 private:
  Arg arg_;
};

// A list of tensors as an Arg, which lives as long as this.
template <typename Tensor>
class BasicListArg {
 public:
  explicit BasicListArg(absl::Span<const Tensor> list) {
    for (const Tensor& t : list) metas_.push_back(t.get());
  }
  Arg arg() const { return Arg(absl::Span<const TensorMeta* const>(metas_)); }

 private:
  absl::InlinedVector<const TensorMeta*, 8> metas_;
};

}  // namespace tt
