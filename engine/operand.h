// Operand: a tensor, a number in a tensor's place, or nothing; what tt::ops functions take.
#pragma once

#include "absl/types/span.h"
#include "engine/dispatcher.h"
#include "engine/tensor.h"

namespace tt {

class Operand {
 public:
  Operand() = default;
  Operand(const Tensor& t) : arg_(t.get()) {}  // NOLINT: reads like a tensor
  Operand(const Scalar& s) : arg_(s) {}        // NOLINT
  Operand(double v) : arg_(v) {}               // NOLINT
  Operand(int64_t v) : arg_(v) {}              // NOLINT
  Operand(int v) : arg_(int64_t{v}) {}         // NOLINT
  Operand(bool v) : arg_(v) {}                 // NOLINT
  explicit Operand(const Arg& arg) : arg_(arg) {}
  const Arg& arg() const { return arg_; }
  bool has_value() const { return !arg_.is_none(); }

 private:
  Arg arg_;  // borrows: an Operand lives as long as the call's full expression
};

namespace ops {

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

// Dispatches `op` and gives its results. `into`, where not empty, is where they land.
Tensors call(uint16_t op, Args args, absl::Span<const Tensor> into = {});

}  // namespace ops
}  // namespace tt
