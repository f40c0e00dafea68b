// ClassShape: checks and offsets of nll_loss's input.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// The ignore_index with which no target is ignored: this one is out of range, too.
inline constexpr int64_t kNoTargetIgnored = std::numeric_limits<int64_t>::min();

// Log likelihoods of shape N x C x space (a single sample has N = 1), with one target per element of N x space.
struct ClassShape {
  int64_t samples = 1, classes, space = 1;

  ClassShape(SizesView sizes, const Tensor& target, const Tensor& weight) {
    check(!sizes.empty(), "expected an input with a class dimension, got a scalar");
    if (sizes.size() > 1) samples = sizes[0];
    classes = sizes.size() > 1 ? sizes[1] : sizes[0];
    for (size_t d = 2; d < sizes.size(); ++d) space *= sizes[d];
    check(target.numel() == positions(), "expected a target for each of ", positions(), " positions, got ",
          target.numel());
    check(!weight || weight.numel() == classes, "expected a weight for each of ", classes, " classes, got ",
          weight ? weight.numel() : 0);
  }
  constexpr int64_t positions() const { return samples * space; }
  // Offset of the likelihood of class `of_class` at position i.
  constexpr int64_t offset(int64_t i, int64_t of_class) const {
    return (i / space * classes + of_class) * space + i % space;
  }
};

// The class dimension of an input of shape (C) or (N, C, ...).
inline int64_t class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }

// How cross entropy mixes the loss of the target's class and the sum of the losses of all classes.
struct LabelSmoothing {
  double target, each;  // factors

  LabelSmoothing(double label_smoothing, const ClassShape& shape)
      : target(1 - label_smoothing),
        each(label_smoothing == 0 ? 0 : label_smoothing / static_cast<double>(shape.classes)) {}
  bool applies() const { return each != 0; }
};

inline void check_loss_gradient(const Tensor& grad, int64_t losses, const Tensor& total_weight) {
  check(grad.numel() == losses && total_weight.numel() == 1, "expected a gradient for each of ", losses,
        " losses and one total weight, got sizes ", grad.sizes(), " and ", total_weight.sizes());
}

// Checks that `largest` and `log_sum`, which the forward pass saved, have one element per position.
inline void check_sums(const Tensor& largest, const Tensor& log_sum, const ClassShape& shape) {
  check(largest.numel() == shape.positions() && log_sum.numel() == shape.positions(),
        "expected one saved maximum and one saved sum for each of ", shape.positions(), " positions, got ",
        largest.numel(), " and ", log_sum.numel());
}

}  // namespace tt
