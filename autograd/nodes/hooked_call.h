// HookedCall: the nodes of one instruction whose gradients client hooks read after the nodes have run.
//
// A composite operator has several nodes. GraphTask holds back the gradients that leave them until all of them have
// run. Shared by the nodes' hooks (Hook::Kind::kAfter); used on the session's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/nodes/node.h"

namespace tt::autograd {

struct HookedCall {
  // A destination of gradients that leave the nodes.
  struct Input {
    const Node* node;
    uint32_t output;
  };
  std::vector<int64_t> stops;      // one per hook, in the order of registration
  std::vector<const Node*> nodes;  // all hold this object; the first one has the instruction's results
  // The destinations of the gradients, in the client's order: with `by_edge`, one per edge of the only node that has a
  // node; else the distinct ones outside of `nodes`.
  std::vector<Input> inputs;
  bool by_edge = false;

  bool contains(const Node* node) const {
    for (const Node* one : nodes) {
      if (one == node) return true;
    }
    return false;
  }
};

}  // namespace tt::autograd
