#include "kernels/cuda/runtime/fused_attention.h"

namespace tt::cuda {

FusedAttention* fused_attention() {
  static const std::unique_ptr<FusedAttention> attention = make_fused_attention();
  return attention.get();
}

}  // namespace tt::cuda
