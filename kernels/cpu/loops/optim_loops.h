// Loops of the fused optimizer steps: PyTorch's algorithms in one pass over memory.
//
// Pointers refer to contiguous elements of one part of a parameter; null for states that the optimizer does not keep.
#pragma once

#include <cstdint>

#include "kernels/common/nn/optim.h"

namespace tt::cpu {

template <typename T>
struct SgdPiece {
  T* param;
  const T* grad;
  T* momentum;
};

void sgd(int64_t n, const SgdStep& step, const SgdPiece<float>& piece);
void sgd(int64_t n, const SgdStep& step, const SgdPiece<double>& piece);

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
