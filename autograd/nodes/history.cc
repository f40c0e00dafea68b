#include "autograd/nodes/history.h"

#include "autograd/nodes/tape.h"
#include "autograd/nodes/view_node.h"

namespace tt::autograd {
namespace {

uint64_t sequence_of_base(const TensorImpl& base) {
  const History* history = find_history(base);
  return history && history->node ? history->node->sequence() : 0;
}

// Replaces the view's node if the base, or another view of it, was written to since the node was created. The new node
// reads the view from the current base.
void refresh_view(const Tensor& view, History& history) {
  const Tensor base(view->base.get());
  if (!base.requires_grad()) return;
  uint64_t sequence = sequence_of_base(*base.get());
  if (history.base_sequence == sequence && history.node) return;
  history.node = make_view_node(base, view);
  history.output = 0;
  history.base_sequence = sequence;
}

}  // namespace

History::History() { Tape::current().histories().add(*this); }

History::~History() {
  HistoryList::remove(*this);
  if (leaf) leaf->forget();
}

void HistoryList::add(History& history) {
  history.next_ = first_;
  history.at_ = &first_;
  if (first_) first_->at_ = &history.next_;
  first_ = &history;
}

void HistoryList::remove(History& history) {
  if (!history.at_) return;
  *history.at_ = history.next_;
  if (history.next_) history.next_->at_ = history.at_;
  history.at_ = nullptr;
}

void HistoryList::break_cycles() {
  while (first_) {
    History& history = *first_;
    remove(history);
    Ref<Node> node = std::move(history.node);
    Tensor grad = std::move(history.grad);
    // At the end of the block, destroying `node` and `grad` may destroy other histories and this one.
  }
}

History* find_history(const TensorImpl& t) { return static_cast<History*>(t.autograd.get()); }

History& history_of(const Tensor& t) {
  if (!t->autograd) t->autograd = std::make_unique<History>();
  return static_cast<History&>(*t->autograd);
}

Edge edge_of(const Tensor& t) {
  History& history = history_of(t);
  if (t->base) refresh_view(t, history);
  if (history.node) return {history.node, history.output, t.dtype()};
  if (!history.leaf) history.leaf = make_ref<LeafNode>(t.get());
  return {history.leaf, 0, t.dtype()};
}

void set_history(const Tensor& t, Ref<Node> node, uint32_t output) {
  t->requires_grad = true;
  History& history = history_of(t);
  history.node = std::move(node);
  history.output = output;
  if (t->base) history.base_sequence = sequence_of_base(*t->base);
}

}  // namespace tt::autograd
