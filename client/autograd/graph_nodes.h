// Access to recorded nodes: the values that they have saved, and hooks that run before and after them.
//
// The engine finds a node from a tensor of the same graph, `root`. Each function waits for the engine once or twice and
// throws Error (NotImplementedError) for a node that the engine does not have.
#pragma once

#include <cstdint>
#include <string>

#include "client/session/graph.h"
#include "client/session/tensor.h"

namespace tt::client {

// Returns what the engine's nodes of a call have saved: JSON, as in autograd/nodes/node_json.cc.
std::string describe_node(const Tensor& root, const GraphNode& node, uint32_t site);
// Returns the saved tensor at `place` of the engine's node `number` of a call, as described.
Tensor saved_value(const Tensor& root, const Ref<GraphNode>& node, int64_t number, int64_t place, uint32_t site);
// Gives a result of saved_value() the history of the argument with this edge, or of the node's result ~edge.
void set_saved_history(const Tensor& value, const Ref<GraphNode>& node, int64_t edge);
// Returns a view of a result at its present place in the graph, where it stays when the tensor is written later.
// Returns a leaf unchanged. Does not wait.
Tensor at_present_edge(const Tensor& tensor, uint32_t site);

// Registers a hook of a node. A hook of kBefore receives the gradients of the node's results and returns their
// replacements; a hook of kAfter receives those of the inputs, then those of the results, and returns replacements for
// the inputs. Null gradients are undefined. Returns the hook's number.
int64_t add_node_hook(const Tensor& root, const Ref<GraphNode>& node, HookKind kind, BackwardFunction hook,
                      uint32_t site);
// Removes a hook. `root` may be null if the node is not a leaf.
void remove_node_hook(const Tensor& root, GraphNode& node, int64_t number, uint32_t site);

}  // namespace tt::client
