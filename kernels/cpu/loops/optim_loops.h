// The loops of the fused optimizer steps: PyTorch's algorithms, one pass over memory.
//
// Pointers are to contiguous elements of one piece of a parameter; null where a state is not kept.
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
