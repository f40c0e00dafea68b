// FusedAttention: interface to a library that computes attention in one kernel per direction.
#pragma once

#include <memory>

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Attention without a mask. All tensors are contiguous, start at a multiple of kAttentionAlignment bytes, and have four
// dimensions: samples, heads, rows (of query, output and their gradients) or columns (of key, value and their
// gradients), and depth (of query and key) or width (of value and output). No tensor is empty.
struct FusedAttentionCall {
  DType dtype;  // float16 or bfloat16
  int64_t samples, heads, rows, columns, depth, width;
  bool causal;  // row i attends to the columns up to i
  float scale;
  const void *query, *key, *value;
  void* output;      // forward(): overwritten; backward(): the forward pass's result
  float* logsumexp;  // one natural logarithm per row; forward(): overwritten; backward(): the forward pass's result
  const void* grad = nullptr;                                              // backward(): the output's gradient
  void *query_grad = nullptr, *key_grad = nullptr, *value_grad = nullptr;  // backward(): overwritten
};
constexpr size_t kAttentionAlignment = 16;

class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  // Enqueue the computation. Return false, and do nothing, if the library does not support the case. Thread-safe. Throw
  // Error (RuntimeError) on failure.
  virtual bool forward(const Queue& queue, const FusedAttentionCall& call) = 0;
  virtual bool backward(const Queue& queue, const FusedAttentionCall& call) = 0;
};

// Returns the process-wide instance, loaded at first use: cuDNN. Returns null if cuDNN is missing or too old.
FusedAttention* fused_attention();
std::unique_ptr<FusedAttention> make_fused_attention();

}  // namespace tt::cuda
