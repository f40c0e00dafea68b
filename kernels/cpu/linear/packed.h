// packed: caches weights in the layout that a primitive prefers, together with their storage.
//
// For a small batch, repacking the weights costs as much as using them. Weights that are used a second time without a
// write in between (inference) are packed once and kept; weights of a training step are used once per write and are
// not kept. Copies are dropped when the storage is written or freed. Thread-safe: several sessions may read a
// published storage.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cpu/linear/onednn.h"

namespace tt::cpu {

// Whether this was called before for the current contents of `t` and the same layout (its own or a preferred one).
bool used_before(const Tensor& t, const dnnl::memory::desc& layout);
// Returns `t`'s elements in the layout `wanted`: a cached copy, or a new one, which is cached if `keep`. `plain`: t's
// layout as the primitive sees it.
Tensor packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, int threads,
              bool keep);

}  // namespace tt::cpu
