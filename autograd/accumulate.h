// Sums of gradients.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::autograd {

// Whether nobody else can see the bytes of `t`, so that they may be written or kept. What it views
// may hold them too, where nothing but `t` holds that.
inline bool is_sole_owner(const Tensor& t) {
  if (t.get()->ref_count() != 1) return false;
  if (!t->base) return t->storage->ref_count() == 1;
  return t->base->ref_count() == 1 && t->storage->ref_count() == 2;
}

// sum += gradient. In place where `in_place` says that `sum` is ours to write; else `sum` becomes a
// fresh tensor. An undefined sum becomes `gradient` itself.
void accumulate(Tensor& sum, Tensor gradient, bool in_place);

}  // namespace tt::autograd
