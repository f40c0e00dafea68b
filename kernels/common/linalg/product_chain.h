// ProductChain: pointwise steps after a matrix product, for a backend's chain kernel.
#pragma once

#include <array>

#include "engine/dispatch/chain.h"
#include "engine/schema/op_ids.h"

namespace tt {

class ProductChain {
 public:
  // The steps are computed in the product's dtype. The product and every operand must outlive the chain.
  explicit ProductChain(const Tensor& product) : compute_(product.dtype()), last_(product.get()) {}
  ProductChain(const ProductChain&) = delete;
  ProductChain& operator=(const ProductChain&) = delete;

  // Multiplies by a number or by a tensor that broadcasts to the product. A number is converted to the product's dtype
  // first.
  void scale(const Scalar& factor) { add_step(op_id::kMul, {last_, Arg(factor.converted_to(compute_))}); }
  void scale(const Tensor& factor) { add_step(op_id::kMul, {last_, Arg(factor.get())}); }
  void add(const Tensor& t, const Scalar& factor) {
    add_step(op_id::kAdd, {last_, Arg(t.get()), Arg(factor.converted_to(compute_))});
  }
  // Applies a pointwise operator of one argument.
  void apply(uint16_t op) { add_step(op, {last_}); }
  // Applies relu or, if `use_gelu`, gelu with the tanh approximation.
  void activate(bool use_gelu) { apply(use_gelu ? op_id::kGeluTanh : op_id::kRelu); }

  absl::Span<const ChainStep> steps() const { return absl::MakeConstSpan(steps_).first(count_); }

 private:
  void add_step(uint16_t op, std::initializer_list<Arg> args) {
    std::copy(args.begin(), args.end(), args_[count_].begin());
    steps_[count_] = {find_op(op), absl::MakeConstSpan(args_[count_]).first(args.size()), compute_};
    last_.kind = Arg::Kind::kSlot;
    last_.slot = count_++;
  }

  static constexpr size_t kMaxSteps = 4;
  DType compute_;
  Arg last_;
  size_t count_ = 0;
  std::array<std::array<Arg, 3>, kMaxSteps> args_;
  std::array<ChainStep, kMaxSteps> steps_;
};

using RunChain = void (*)(absl::Span<const ChainStep> steps, const Tensor& out);

// product = act(alpha * product + beta * input). Does not read `input` if beta is 0.
inline void finish_addmm_activation(RunChain run_chain, const Tensor& input, const Scalar& beta, const Scalar& alpha,
                                    bool use_gelu, Tensor& product) {
  ProductChain chain(product);
  if (alpha.to_complex() != 1.0) chain.scale(alpha);
  if (beta.to_bool()) chain.add(input, beta);
  chain.activate(use_gelu);
  run_chain(chain.steps(), product);
}

// out = product * scale_a * scale_b + bias, times scale_result if it is defined.
inline void finish_scaled_mm(RunChain run_chain, const Tensor& product, const Tensor& scale_a, const Tensor& scale_b,
                             const Tensor& bias, const Tensor& scale_result, Tensor& out) {
  ProductChain chain(product);
  chain.scale(scale_a);
  chain.scale(scale_b);
  if (bias) chain.add(bias, int64_t{1});
  if (scale_result) chain.scale(scale_result);
  run_chain(chain.steps(), out);
}

// out = product + bias, times scale_result if it is defined.
inline void finish_block_scaled_mm(RunChain run_chain, const Tensor& product, const Tensor& bias,
                                   const Tensor& scale_result, Tensor& out) {
  ProductChain chain(product);
  if (bias) {
    chain.add(bias, int64_t{1});
  } else {
    chain.scale(Scalar(int64_t{1}));  // a chain has at least one step
  }
  if (scale_result) chain.scale(scale_result);
  run_chain(chain.steps(), out);
}

}  // namespace tt
