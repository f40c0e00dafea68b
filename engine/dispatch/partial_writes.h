// PartialWrites: storages that a cancelled kernel may have written in part.
//
// Their values are neither the old nor the new ones. The Executor therefore poisons every handle whose tensor uses such
// a storage: the instruction's target and other views of the same bytes. There is one list per thread. The Dispatcher
// adds storages to the list; the Executor reads and clears the list when an instruction has failed.
#pragma once

#include "absl/container/inlined_vector.h"
#include "engine/dispatch/dispatcher.h"

namespace tt {

class PartialWrites {
 public:
  // Adds the tensors that `call` writes (out tensors, `Tensor(w)` arguments), and increments their versions, so that no
  // backward pass uses them.
  static void add(const Call& call);
  // Returns the list and clears it.
  using Storages = absl::InlinedVector<Ref<Storage>, 4>;
  static Storages take();
};

}  // namespace tt
