// Access to the recorded nodes of one call of the client: their description, saved tensors and hooks.
//
// The client names a call by the name of its first result. Calls that write to the same tensor share this name; their
// operator, and how many of them are later, distinguish them. Used on the session's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/nodes/operator_node.h"

namespace tt::autograd {

struct CallName {
  uint64_t first;  // the name of the first result
  uint16_t op;
  int64_t rank;  // how many calls with the same name and operator are later
};

// Returns the nodes of the call in the graph of `root`, the latest first: one node of the operator, or the nodes of
// the operators that it is composed of. Throws Error (NotImplementedError) if there are none.
std::vector<Ref<OperatorNode>> find_call(const Tensor& root, const CallName& name);

// Returns a JSON array with one object per node.
std::string describe(absl::Span<const Ref<OperatorNode>> nodes);

struct HookSizes {
  int64_t inputs;
  int64_t outputs;
};
// Registers a hook that runs before the node of `root`, or of the call if `name.first` is not 0.
HookSizes hook_before(int64_t stop, const Tensor& root, const CallName& name);
// Registers a hook that runs after the call's nodes. `inputs` and `leaves` are those of the operator graph_hook.
HookSizes hook_after(int64_t stop, const Tensor& root, const CallName& name, absl::Span<const int64_t> inputs,
                     absl::Span<const Tensor> leaves);

}  // namespace tt::autograd
