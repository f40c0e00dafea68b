// accumulate: adds gradients, in place if possible.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt {
class DeferredCalls;
}

namespace tt::autograd {

// Whether only `t` refers to its storage, so that the bytes may be overwritten or kept. If `t` is a view, its base may
// also refer to the storage, provided that only `t` refers to the base. Bytes that other sessions use are not only t's.
inline bool is_sole_owner(const Tensor& t) {
  if (t->storage->is_read_only() || t->storage->is_shared()) return false;
  if (t.get()->ref_count() != 1) return false;
  if (!t->base) return t->storage->ref_count() == 1;
  return t->base->ref_count() == 1 && t->storage->ref_count() == 2;
}

// sum += gradient. Writes to `sum` if `in_place` (the caller owns it); otherwise replaces it with a new tensor. An
// undefined sum becomes `gradient` itself. `deferred`: the calls of the pass that are executed later, of which both may
// be results; null if there are none.
void accumulate(Tensor& sum, Tensor gradient, bool in_place, DeferredCalls* deferred);

}  // namespace tt::autograd
