// History: a tensor's autograd state: its node on the tape and, for a leaf, its gradient. Stored in
// TensorImpl::autograd.
//
// A leaf gets a LeafNode when an operation on it is first recorded. Any other tensor that requires grad has the node
// that computed it. After a write to its base, a view gets a new node when edge_of() is next called for it.
#pragma once

#include <cstdint>
#include <memory>

#include "autograd/nodes/leaf.h"
#include "autograd/nodes/node.h"
#include "engine/schema/error.h"
#include "engine/schema/thread_cached.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

// Registered with the tape of the Context that created it. Destroyed on that Context's thread, or after its tape.
class History final : public AutogradMeta, public ThreadCached<History> {
 public:
  History();
  ~History() override;
  bool is_leaf() const override { return !node; }

  Ref<Node> node;  // null: a leaf
  uint32_t output = 0;
  uint64_t base_sequence = 0;  // for a view: the base's node sequence when `node` was set; 0 if the base was a leaf
  Ref<LeafNode> leaf;
  Tensor grad;  // for a leaf: the accumulated gradient
  // The error that cancelled a backward pass and left the `grad` of this leaf incomplete; null if there is none.
  // Setting the gradient clears the error.
  std::shared_ptr<const Error> grad_error;

 private:
  friend class HistoryList;
  History* next_ = nullptr;
  History** at_ = nullptr;  // the list's pointer to this object; null if not in a list
};

// Returns the history of `t`; creates it if `t` has none.
History& history_of(const Tensor& t);
// Returns null if `t` has no history.
History* find_history(const TensorImpl& t);

// Returns the destination of the gradient of `t`. Requires that `t` requires grad.
Edge edge_of(const Tensor& t);
// Records that `t` is result `output` of `node`. Sets requires_grad.
void set_history(const Tensor& t, Ref<Node> node, uint32_t output);

}  // namespace tt::autograd
