#include "autograd/nodes/node.h"

#include "autograd/nodes/hooked_call.h"
#include "autograd/nodes/tape.h"

namespace tt::autograd {
namespace {

// Destroys nodes without recursion. A node often owns the last reference to the node before it, so destroying that node
// in the destructor would recurse to the depth of the graph.
struct DeferredDeleter {
  std::vector<Ref<Node>> nodes;
  bool draining = false;

  void drain() {
    if (draining) return;
    draining = true;
    while (!nodes.empty()) {
      Ref<Node> node = std::move(nodes.back());
      nodes.pop_back();
    }
    draining = false;
  }
};

// Estimated host bytes of a node. Subclasses may set a larger number.
constexpr size_t kNodeBytes = 512;

DeferredDeleter& deferred_deleter() {
  static thread_local DeferredDeleter deleter;
  return deleter;
}

}  // namespace

void Node::enter_tape() {
  const Context& context = Context::current();
  reenter_tape(Tape::current().next_sequence(), context.first_result, context.site);
}

void Node::reenter_tape(uint64_t sequence, uint64_t first_result, uint32_t site) {
  sequence_ = sequence;
  first_result_ = first_result;
  site_ = site;
  meter_ = &Tape::current().meter();
  meter_->enter();
  set_host_bytes(kNodeBytes + edges.size() * sizeof(Edge));
}

void Node::add_hook(Hook hook) {
  if (!meter_) {  // a leaf: enter_tape() was not called
    meter_ = &Tape::current().meter();
    meter_->enter();
  }
  if (!hooks) hooks = std::make_unique<std::vector<Hook>>();
  const size_t before = hooks->capacity();
  hooks->push_back(std::move(hook));
  meter_->add(static_cast<int64_t>((hooks->capacity() - before) * sizeof(Hook)));
}

void Node::set_host_bytes(size_t bytes) {
  meter_->add(static_cast<int64_t>(bytes) - static_cast<int64_t>(host_bytes_));
  host_bytes_ = bytes;
}

Node::~Node() {
  if (meter_) {
    set_host_bytes(0);
    if (hooks) meter_->add(-static_cast<int64_t>(hooks->capacity() * sizeof(Hook)));
    meter_->leave();
  }
  for (Edge& edge : edges) {
    if (!edge.node) continue;
    if (edge.node->ref_count() > 1) {  // the last reference may be that of a node which is destroyed here
      edge.node = {};
      continue;
    }
    deferred_deleter().nodes.push_back(std::move(edge.node));
    deferred_deleter().drain();
  }
}

}  // namespace tt::autograd
