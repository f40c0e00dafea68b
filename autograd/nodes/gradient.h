// Gradient: the derivative of one operator, generated from its `grad` formulas.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

class Backward;

// One formula of a gradient. Each mask has one bit per parameter or per result.
struct GradientPart {
  uint32_t params;   // parameters whose gradients the formula computes
  uint32_t args;     // tensor arguments whose values the formula reads; saved
  uint32_t metas;    // tensor arguments of which the formula reads only sizes, dtype and device
  uint32_t results;  // results that the formula reads; saved
};

struct Gradient {
  void (*run)(Backward& b) = nullptr;  // computes the gradients that are needed
  absl::Span<const GradientPart> parts;
  uint32_t plain = 0;  // non-tensor arguments that some formula reads
  // Whether complex values are conjugated before formulas read them. `g * cos(input)` is then PyTorch's convention (the
  // conjugate Wirtinger derivative) for a holomorphic function, since f(conj(z)) = conj(f(z)).
  bool conjugates = true;
};

// Returns null if the operator has no gradient. Constant data; thread-safe.
const Gradient* find_gradient(uint16_t op);

}  // namespace tt::autograd
