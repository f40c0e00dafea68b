// The loops of the fused optimizer steps: PyTorch's algorithms, one pass over memory.
//
// Pointers are to contiguous elements of one piece of a parameter; null where a state is not kept.
#pragma once

#include <cstdint>

namespace tt::cpu {

struct SgdStep {
  double lr;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool first = false;  // the momentum buffer holds nothing yet
};

template <typename T>
struct SgdPiece {
  T* param;
  const T* grad;
  T* momentum;
};

void sgd(int64_t n, const SgdStep& step, const SgdPiece<float>& piece);
void sgd(int64_t n, const SgdStep& step, const SgdPiece<double>& piece);

struct AdamStep {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay = 0;
  bool decoupled = false;  // AdamW: the decay is of the parameter, not in the gradient
  bool maximize = false;
  double correction1 = 1;  // 1 - beta1^t
  double correction2 = 1;  // 1 - beta2^t
};

template <typename T>
struct AdamPiece {
  T* param;
  const T* grad;
  T* average;
  T* square;
  T* largest;  // amsgrad
};

void adam(int64_t n, const AdamStep& step, const AdamPiece<float>& piece);
void adam(int64_t n, const AdamStep& step, const AdamPiece<double>& piece);

}  // namespace tt::cpu
