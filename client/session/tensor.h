// client::Tensor: a handle to a tensor in an engine, with its metadata.
//
// Creating, viewing and computing never wait: the rules infer the result's metadata, and the session sends the
// instruction. Only reading values and operators with data-dependent shapes wait. Reference counted; the last reference
// to a Handle releases the engine's tensor. A Handle may be used by one thread at a time.
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
  // Node in the client's copy of the autograd graph (client/session/graph.h). Null for leaves and tensors without
  // gradient.
  Ref<GraphNode> node;
  Ref<GraphNode> leaf_node;    // node of a leaf that a recorded operation has used
  uint32_t output = 0;         // index of this tensor among the results of `node`
  uint64_t base_sequence = 0;  // for a view: sequence of the base's node when `node` was created; 0 for a leaf
  Ref<Handle> base;            // for a differentiable view: the base tensor, never itself a view; else null
  // For such a view: whether the base did not require grad when it was made. The view requires grad when a recorded
  // write, of the base or another view, has changed that.
  bool follows_base = false;
  uint64_t viewed_storage = 0;        // for a view: number of the shared storage; 0 if the tensor owns its storage
  uint64_t viewed_storage_bytes = 0;  // for a view: size of the shared storage in bytes
  Ref<Handle> grad;                   // gradient that backward has stored; null: none
  // Set by a user of the client whose handle has no values in the engine; such a handle has no id.
  Ref<RefCounted> stands_for;
  bool retains_grad = false;
  // Whether writes to this tensor and its views do not count as changes of the tensor whose `.data` it is. Ends when a
  // recorded operation uses it.
  bool is_data = false;
  // Whether the tensor was created in inference mode, or is a view of such a tensor.
  bool is_inference = false;
  // Whether a Function of the program returned it, or what it is a view of, as a view of another tensor. A recorded
  // write would leave out the Function's gradient, so that it is refused, or the view's use after it.
  bool is_function_view = false;
  uint32_t function_view_version = 0;  // its version then

  // The user's object that had this handle has another one now. Set by a user of the client.
  bool is_replaced = false;
  void* object = nullptr;  // the user's object of this handle, not owned. Set and cleared by a user of the client.

  void set_base(Ref<Handle> viewed) {
    follows_base = !viewed->requires_grad;
    base = std::move(viewed);
  }
  void follow_base() {
    if (!follows_base || requires_grad || !base->requires_grad || base->is_leaf()) [[likely]]
      return;
    requires_grad = has_gradients(dtype);
  }
  // A view of a tensor that requires grad has a history, even if its node has not been created yet.
  bool is_leaf() const { return !node && !(base && requires_grad && base->requires_grad); }
  // Identifies the storage: equal for a tensor and its views, unique within the session.
  uint64_t storage_number() const { return viewed_storage ? viewed_storage : id; }
  uint64_t storage_bytes() const {
    return viewed_storage ? viewed_storage_bytes : static_cast<uint64_t>(numel()) * item_size(dtype);
  }
  // Number of in-place writes, shared with base and its views, and with the results of detach().
  uint32_t version() const {
    const Handle& root = base ? *base : *this;
    return root.shared_version_ ? *root.shared_version_ : root.version_;
  }
  void bump_version() {
    Handle& root = base ? *base : *this;
    ++(root.shared_version_ ? *root.shared_version_ : root.version_);
  }
  // For a tensor that was detached from `other`: shares its version.
  void share_version(Handle& other) {
    Handle& root = other.base ? *other.base : other;
    if (!root.shared_version_) root.shared_version_ = std::make_shared<uint32_t>(root.version_);
    shared_version_ = root.shared_version_;
  }
  // Ends share_version(), for a tensor that is the `.data` of another one.
  void own_version() {
    version_ = version();
    shared_version_ = nullptr;
  }

  // Every operation creates and destroys Handles, so each thread has a free list.
  static void* operator new(size_t bytes);
  static void operator delete(void* block) noexcept;

 private:
  uint32_t version_ = 0;
  std::shared_ptr<uint32_t> shared_version_;  // used instead if the tensor was detached
};

using Tensor = Ref<Handle>;
using Tensors = absl::InlinedVector<Tensor, 1>;

}  // namespace tt::client
