// History: a tensor's place on the tape. What hangs on TensorImpl::autograd.
//
// A leaf has a LeafNode once something was recorded with it; any other tensor that requires grad
// has the node that made it. A view whose base was written to since gets a new node when it is
// next asked for one.
#pragma once

#include <cstdint>
#include <memory>

#include "autograd/leaf.h"
#include "autograd/node.h"
#include "engine/schema/error.h"
#include "engine/schema/recycled.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

// Known to the tape of the Context that it was made in, and dropped on that Context's thread or after its tape.
class History final : public AutogradMeta, public Recycled<History> {
 public:
  History();
  ~History() override;
  bool is_leaf() const override { return !node; }

  Ref<Node> node;  // null: a leaf
  uint32_t output = 0;
  uint64_t base_sequence = 0;  // of a view: its base's node when `node` was made; 0: a leaf
  Ref<LeafNode> leaf;
  Tensor grad;  // of a leaf: what was accumulated
  // Of a leaf: why `grad` is not what backward passes should have made of it (one of them was cancelled). Null where
  // it is. Whoever sets the gradient clears it.
  std::shared_ptr<const Error> lost;

 private:
  friend class HistoryList;
  History* next_ = nullptr;
  History** at_ = nullptr;  // the pointer that points here; null: in no list
};

// Makes one where there is none.
History& history_of(const Tensor& t);
// Null where there is none.
History* find_history(const TensorImpl& t);

// Where a gradient of `t` goes. Requires that `t` requires grad.
Edge edge_of(const Tensor& t);
// Makes `t` result `output` of `node`: it requires grad from now on.
void set_history(const Tensor& t, Ref<Node> node, uint32_t output);

}  // namespace tt::autograd
