#include "kernels/cuda/nn/library_attention.h"

#include <cmath>

#include "kernels/common/nn/attention_shape.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/runtime/fused_attention.h"

namespace tt::cuda {
namespace {

constexpr int kMinCapability = 80;
constexpr int64_t kMultiple = 8, kMaxDepth = 128;  // of depth and width; larger ones only on some devices
constexpr int64_t kMinRows = 2;  // one row uses other kernels: github.com/pytorch/pytorch/issues/193893
// Gradients of a sequence that does not fill the last tile are NaN in some versions of cuDNN if a row's logsumexp is
// below -88 (github.com/NVIDIA/cudnn-frontend/issues/1072, github.com/pytorch/pytorch/issues/196678).
constexpr int64_t kTile = 128;

// A mask is not supported: fully masked rows must give zeros, and only the device could find them. The scale is
// positive: kernels take the maximum of a row before scaling.
bool is_supported(const Tensor& query, const AttentionShape& shape, const Tensor& mask, double scale) {
  const auto fits = [](int64_t size) { return size > 0 && size <= kMaxDepth && size % kMultiple == 0; };
  return is_reduced_floating(query.dtype()) && !mask && fits(shape.depth) && fits(shape.width) && shape.batches > 0 &&
         shape.rows >= kMinRows && shape.columns > 0 && scale > 0 && std::isfinite(static_cast<float>(scale)) &&
         compute_capability(query.device().index) >= kMinCapability;
}

bool is_usable(const Tensor& t) {
  return t.is_contiguous() && reinterpret_cast<uintptr_t>(t.data()) % kAttentionAlignment == 0;
}
template <typename... Ts>
bool are_usable(const Ts&... tensors) {
  return (is_usable(tensors) && ...);
}

// All but the gradients.
FusedAttentionCall call_of(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                           const Tensor& output, const Tensor& logsumexp) {
  return {q.dtype(),
          shape.batches / shape.heads,
          shape.heads,
          shape.rows,
          shape.columns,
          shape.depth,
          shape.width,
          shape.causal,
          static_cast<float>(scale),
          q.data(),
          k.data(),
          v.data(),
          output.data(),
          logsumexp.data_as<float>()};
}

}  // namespace

bool attend_by_library(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                       double scale, const Tensor& output, const Tensor& logsumexp) {
  const AttentionShape shape(query, key, value, is_causal);
  FusedAttention* const library = is_supported(query, shape, mask, scale) ? fused_attention() : nullptr;
  if (!library) return false;
  const Tensor q = contiguous(query), k = contiguous(key), v = contiguous(value);
  if (!are_usable(q, k, v, output, logsumexp)) return false;
  return library->forward(queue_of(output), call_of(shape, q, k, v, scale, output, logsumexp));
}

bool differentiate_by_library(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& mask, const Tensor& output, const Tensor& logsumexp, bool is_causal,
                              double scale, const Tensor& query_grad, const Tensor& key_grad,
                              const Tensor& value_grad) {
  const AttentionShape shape(query, key, value, is_causal);
  if (!is_supported(query, shape, mask, scale) || shape.rows % kTile != 0 || shape.columns % kTile != 0) return false;
  FusedAttention* const library = fused_attention();
  if (!library) return false;
  const Tensor q = contiguous(query), k = contiguous(key), v = contiguous(value), g = contiguous(grad),
               y = contiguous(output), sums = contiguous(logsumexp);
  if (!are_usable(q, k, v, g, y, sums, query_grad, key_grad, value_grad)) return false;
  FusedAttentionCall call = call_of(shape, q, k, v, scale, y, sums);
  call.grad = g.data();
  call.query_grad = query_grad.data();
  call.key_grad = key_grad.data();
  call.value_grad = value_grad.data();
  return library->backward(queue_of(grad), call);
}

}  // namespace tt::cuda
