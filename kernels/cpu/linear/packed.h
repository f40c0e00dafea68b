// packed: weights in the layout that a primitive wants, kept beside their storage.
//
// Repacking the weights of a small batch costs as much as using them. Weights that are used a
// second time without having been written in between (inference) are packed once and kept; those
// of a training step are not, since each is used once. What is kept is dropped with the storage,
// or when it is written. Thread-safe: published storages are read by several sessions.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cpu/linear/onednn.h"

namespace tt::cpu {

// Whether this was asked before of `t` as it is, with the same layout: its own, or a wanted one.
bool used_before(const Tensor& t, const dnnl::memory::desc& layout);
// `t`'s bytes as `wanted` lays them out: a copy that was kept, or a fresh one, which is kept for the
// next time where `keep` says so. `plain` is how t lies, as the primitive sees it.
Tensor packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, int threads,
              bool keep);

}  // namespace tt::cpu
