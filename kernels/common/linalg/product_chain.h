// ProductChain: what is still to be done to a matrix product, as pointwise steps over it for the backend's chain
// kernel.
#pragma once

#include <array>

#include "engine/dispatch/chain.h"
#include "engine/schema/op_ids.h"

namespace tt {

class ProductChain {
 public:
  // Everything is computed in the product's dtype, which must outlive the chain as what is added must.
  explicit ProductChain(const Tensor& product) : compute_(product.dtype()), last_(product.get()) {}
  ProductChain(const ProductChain&) = delete;
  ProductChain& operator=(const ProductChain&) = delete;

  // Times a number, or a tensor that broadcasts to it. Integers are scaled by integers.
  void scale(const Scalar& factor) { add_step(op_id::kMul, {last_, Arg(factor.in_dtype(compute_))}); }
  void scale(const Tensor& factor) { add_step(op_id::kMul, {last_, Arg(factor.get())}); }
  void add(const Tensor& t, const Scalar& factor) {
    add_step(op_id::kAdd, {last_, Arg(t.get()), Arg(factor.in_dtype(compute_))});
  }
  // relu, or gelu approximated by tanh.
  void activate(bool use_gelu) { add_step(use_gelu ? op_id::kGeluTanh : op_id::kRelu, {last_}); }

  absl::Span<const ChainStep> steps() const { return absl::MakeConstSpan(steps_).first(count_); }

 private:
  void add_step(uint16_t op, std::initializer_list<Arg> args) {
    std::copy(args.begin(), args.end(), args_[count_].begin());
    steps_[count_] = {find_op(op), absl::MakeConstSpan(args_[count_]).first(args.size()), compute_};
    last_.kind = Arg::Kind::kSlot;
    last_.slot = count_++;
  }

  static constexpr size_t kMostSteps = 4;
  DType compute_;
  Arg last_;
  size_t count_ = 0;
  std::array<std::array<Arg, 3>, kMostSteps> args_;
  std::array<ChainStep, kMostSteps> steps_;
};

// act(alpha * product + beta * input); input is not read where beta is 0.
inline void finish_activated(ProductChain& chain, const Tensor& input, const Scalar& beta, const Scalar& alpha,
                             bool use_gelu) {
  if (alpha.to_complex() != 1.0) chain.scale(alpha);
  if (beta.to_bool()) chain.add(input, beta);
  chain.activate(use_gelu);
}

// product * scale_a * scale_b + bias, times scale_result where that is defined.
inline void finish_scaled(ProductChain& chain, const Tensor& scale_a, const Tensor& scale_b, const Tensor& bias,
                          const Tensor& scale_result) {
  chain.scale(scale_a);
  chain.scale(scale_b);
  if (bias) chain.add(bias, int64_t{1});
  if (scale_result) chain.scale(scale_result);
}

}  // namespace tt
