#include "autograd/node.h"

#include "autograd/tape.h"

namespace tt::autograd {
namespace {

// What dying nodes owned. A node is often the last to hold the one before it; dropping that from
// a destructor would recurse as deep as the graph.
struct Graveyard {
  std::vector<Ref<Node>> nodes;
  bool digging = false;

  void dig() {
    if (digging) return;
    digging = true;
    while (!nodes.empty()) {
      Ref<Node> node = std::move(nodes.back());
      nodes.pop_back();
    }
    digging = false;
  }
};

Graveyard& graveyard() {
  static thread_local Graveyard graveyard;
  return graveyard;
}

}  // namespace

void Node::enter_tape() {
  sequence_ = Tape::current().next_sequence();
  site_ = Context::current().site;
}

Node::~Node() {
  for (Edge& edge : edges) {
    if (!edge.node || edge.node->ref_count() > 1) continue;
    graveyard().nodes.push_back(std::move(edge.node));
    graveyard().dig();
  }
}

}  // namespace tt::autograd
