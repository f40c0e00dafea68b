// packed: weights in the layout that a oneDNN primitive prefers, cached with their storage.
//
// With a small batch, packing the weights costs as much as using them. Weights that are used twice without a write in
// between (inference) are packed once and cached; those of a convolution without gradients are cached at once if most
// of the session's memory stays free. Weights of a training step are not cached, because they are used once. Copies are
// dropped when the storage is freed, when an allocation of the session would fail otherwise, and at the first use after
// a write; the bytes are charged until then. Sessions that read the same published bytes use one copy, which belongs to
// the storage of the session that made it. The copies of a storage take at most twice its bytes: the oldest are
// dropped, and are made again after two more uses. Thread-safe.
#pragma once

#include "absl/functional/function_ref.h"
#include "engine/tensor/tensor.h"
#include "kernels/cpu/blas/onednn.h"

namespace tt::cpu {

// Whether used_before() was called with the same layout since `t` was last written.
bool used_before(const Tensor& t, const dnnl::memory::desc& layout);
// Returns t's values in the layout `wanted`: the cached copy, or a new copy, which is cached if `keep`. `plain` is the
// layout of `t`.
Tensor packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, int threads,
              bool keep);
// The same for a layout that is not oneDNN's: `make` writes the copy, of wanted's bytes and t's dtype. The pair of
// layouts identifies the copy, so that no two ways to pack may use the same.
Tensor packed_by(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
                 absl::FunctionRef<void(const Tensor& copy)> make, bool keep);

// The cached copy, or an undefined tensor.
Tensor find_packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted);
// Whether a copy in the layout `wanted` that is cached at first use leaves enough memory to the session's and the
// engine's tensors: copies take a quarter of the memory that is free otherwise, at most.
bool has_room_for_copy(const Tensor& t, const dnnl::memory::desc& wanted);
// Drops the cached copies of a tenant's sessions; none of kNoTenant. Any thread may call it.
void forget_packed(uint64_t tenant);
// Drops the cached copies of the part of t's storage that `t` and `plain` describe.
void drop_packed(const Tensor& t, const dnnl::memory::desc& plain);

}  // namespace tt::cpu
