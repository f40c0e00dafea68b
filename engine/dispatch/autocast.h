// Autocast in the engine: a session's settings, and its casts of parameters.
//
// A member of CallScope. The kernel at Key::kAutocast casts the arguments of an instruction's call and redispatches.
// The calls that an operator makes itself are not cast, because the operator's own policy decides. Used by the thread
// on which the scope is current.
#pragma once

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/schema/autocast.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct Call;
class Dispatcher;

class Autocast {
 public:
  AutocastState state;
  // Set during the capture of a graph, which must not read tensors that are freed before its replay.
  bool is_capturing = false;

  // Returns `t` cast to `dtype`, as a recorded operation. Keeps and reuses the casts to lower precision of leaves that
  // require grad, if the settings allow it. A cast is not reused after a write to the tensor.
  Tensor cast(const Tensor& t, DType dtype);
  void clear() { casts_.clear(); }

  struct Kept {
    Tensor source, cast;
    uint32_t version;  // of the source
  };
  // For an image of the session (engine/session/image.h).
  const absl::flat_hash_map<const TensorImpl*, Kept>& casts() const { return casts_; }
  void keep(Kept kept) {
    const TensorImpl* const source = kept.source.get();
    casts_.insert_or_assign(source, std::move(kept));
  }

 private:
  bool keeps(const Tensor& t, DType dtype) const;

  absl::flat_hash_map<const TensorImpl*, Kept> casts_;
};

// The kernel at Key::kAutocast, for all operators.
void autocast(Call& call);

}  // namespace tt
