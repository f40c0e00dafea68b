// BasicOperand and BasicListArg: parameter types of typed operator functions, converted to Args. For the client's and
// the engine's tensors.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/scalar.h"

namespace tt {

// A tensor, a number passed for a tensor, or nothing. Does not own the tensor: valid until the end of the call's full
// expression.
template <typename Tensor>
class BasicOperand {
 public:
  BasicOperand() = default;
  BasicOperand(const Tensor& t) : arg_(t.get()) {}  // NOLINT: implicit, as a tensor argument
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

// Holds a list of tensors as an Arg that is valid as long as this object.
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
