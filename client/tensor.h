// client::Tensor: a handle on a tensor in an engine, with everything known of it but its bytes.
//
// Creating, viewing and computing never waits: the rules say what the result looks like, and the
// session sends the instruction along. Only reading values waits, and operators whose shape
// depends on data. Counted references; a Handle's last reference releases the engine's tensor.
// Thread-safe as far as the session is: one thread at a time touches one Handle.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "engine/schema/meta.h"
#include "engine/schema/ref.h"
#include "engine/schema/scalar.h"

namespace tt::client {

class Session;
class GraphNode;

struct Handle final : public RefCounted, public TensorMeta {
  Handle(TensorMeta meta, Ref<Session> session, uint64_t id);
  ~Handle() override;  // queues the release; never waits, never throws

  Ref<Session> session;
  uint64_t id;
  // The shadow of the engine's tape: enough to know, without asking, which leaves a backward
  // reaches. Null for leaves and for what needs no gradient.
  Ref<GraphNode> node;
  Ref<GraphNode> leaf_node;           // of a leaf that something was recorded with
  uint32_t output = 0;                // which result of `node` this is
  uint64_t base_sequence = 0;         // of a view: its base's node when `node` was made; 0: a leaf
  Ref<Handle> base;                   // of a view that gradients go through: what it views, else null
  uint64_t viewed_storage = 0;        // of a view: number of the storage that it shares; 0: its own
  uint64_t viewed_storage_bytes = 0;  // of a view: bytes of that storage
  Ref<Handle> grad;                   // of a leaf, after backward
  bool retains_grad = false;

  // A view of what requires grad has a history, though it may not have been asked for yet.
  bool is_leaf() const { return !node && !(base && requires_grad && base->requires_grad); }
  // Identity and bytes of the storage: equal for a tensor and its views. Unique within the session.
  uint64_t storage_number() const { return viewed_storage ? viewed_storage : id; }
  uint64_t storage_bytes() const {
    return viewed_storage ? viewed_storage_bytes : static_cast<uint64_t>(numel()) * item_size(dtype);
  }
  // Writes in place, shared with base and its views. A view's counter is its base's.
  uint32_t version() const { return base ? base->version_ : version_; }
  void bump_version() { ++(base ? base->version_ : version_); }

  // Handles come and go with every operation: a free list a thread.
  static void* operator new(size_t bytes);
  static void operator delete(void* block) noexcept;

 private:
  uint32_t version_ = 0;
};

using Tensor = Ref<Handle>;
using Tensors = absl::InlinedVector<Tensor, 1>;

}  // namespace tt::client
