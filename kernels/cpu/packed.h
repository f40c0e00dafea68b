// packed: weights in the layout that a primitive wants, kept beside their storage.
//
// Repacking the weights of a small batch costs as much as using them. Weights that are used a
// second time without having been written in between (inference) are packed once and kept; those
// of a training step are not, since each is used once. What is kept is dropped with the storage,
// or when it is written. Thread-safe: published storages are read by several sessions.
#pragma once

#include "engine/tensor.h"
#include "kernels/cpu/onednn.h"

namespace tt::cpu {

// `t`'s bytes as `wanted` lays them out; undefined where `only_kept` and the copy is not kept (and
// would not be now). `plain` is how t lies, as the primitive sees it.
Tensor packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, int threads,
              bool only_kept = false);

}  // namespace tt::cpu
