// PartialWrites: storages that a cancelled kernel may have written in part.
//
// Their values are neither the old ones nor the new ones, so whatever name stands for them is poisoned, be it the
// instruction's target or another view of the same bytes. One list per thread; the Dispatcher adds to it, the Executor
// takes it when an instruction has failed.
#pragma once

#include "absl/container/inlined_vector.h"
#include "engine/dispatch/dispatcher.h"

namespace tt {

class PartialWrites {
 public:
  // Adds what `call` was given to write (outputs that were given, `Tensor(w)` arguments), and bumps their versions, so
  // that no backward pass uses them.
  static void add(const Call& call);
  // The list, which is empty afterwards.
  using Storages = absl::InlinedVector<Ref<Storage>, 4>;
  static Storages take();
};

}  // namespace tt
