// Likelihoods: what nll_loss picks from.
#pragma once

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Log likelihoods as N x C x space (a single sample is N = 1), with a target for each of N x space.
struct Likelihoods {
  int64_t samples = 1, classes, space = 1;

  Likelihoods(SizesView sizes, const Tensor& target, const Tensor& weight) {
    check(!sizes.empty(), "input must have a dimension of classes");
    if (sizes.size() > 1) samples = sizes[0];
    classes = sizes.size() > 1 ? sizes[1] : sizes[0];
    for (size_t d = 2; d < sizes.size(); ++d) space *= sizes[d];
    check(target.numel() == positions(), "expected a target for each of ", positions(), " positions, got ",
          target.numel());
    check(!weight || weight.numel() == classes, "expected a weight for each of ", classes, " classes");
  }
  constexpr int64_t positions() const { return samples * space; }
  // Where position i has its likelihood of a class.
  constexpr int64_t offset(int64_t i, int64_t of_class) const {
    return (i / space * classes + of_class) * space + i % space;
  }
};

// Of (C) or (N, C, ...).
inline int64_t class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }

inline void check_loss_gradient(const Tensor& grad, int64_t losses, const Tensor& total_weight) {
  check(grad.numel() == losses && total_weight.numel() == 1, "the gradient does not fit the loss, got ",
        to_string(grad.sizes()));
}

// What the sum of exponentials at each position was.
inline void check_sums(const Tensor& largest, const Tensor& log_sum, const Likelihoods& shape) {
  check(largest.numel() == shape.positions() && log_sum.numel() == shape.positions(), "expected the sums of ",
        shape.positions(), " positions, got ", largest.numel(), " and ", log_sum.numel());
}

}  // namespace tt
