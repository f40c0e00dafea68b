// Gradient: how one operator is differentiated, as generated from its `grad` formulas.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

class Backward;

// One formula. Bits are parameters' (or results') positions.
struct GradientPart {
  uint32_t params;   // those it gives gradients for
  uint32_t args;     // tensor arguments whose values it reads: kept
  uint32_t metas;    // of which it only asks sizes, dtype and device
  uint32_t results;  // results that it reads: kept
};

struct Gradient {
  void (*run)(Backward& b) = nullptr;  // gives the gradients that are needed
  absl::Span<const GradientPart> parts;
  uint32_t plain = 0;  // arguments that are no tensors and that some formula reads
  // Whether formulas see the conjugates of what is complex, so that `g * cos(input)` is what PyTorch's convention (the
  // conjugate Wirtinger derivative) asks of a holomorphic function; f of a conjugate is then the conjugate of f.
  bool conjugates = true;
};

// Null where the operator has no gradient. Constant data; thread-safe.
const Gradient* find_gradient(uint16_t op);

}  // namespace tt::autograd
