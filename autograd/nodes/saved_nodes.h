// SavedNodes: nodes whose saved tensors the client stores (saved_tensors_hooks of PyTorch).
//
// The client encloses an instruction in saved_begin and saved_end, reads which tensors the instruction's nodes have
// saved, keeps what it needs of them, and frees them with saved_release. A backward pass then stops at each of these
// nodes until the client supplies its tensors. Owned by the Tape; used on the session's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "autograd/nodes/operator_node.h"

namespace tt::autograd {

class SavedNodes {
 public:
  // Starts to collect the nodes of the next instruction.
  void begin() { watched_.clear(); }
  void add(const Ref<OperatorNode>& node) { watched_.push_back(node); }

  // Ends the collection. Assigns the stop `stop` + i to node i of those that saved tensors, and returns the description
  // of these tensors: for each node their number, then for each tensor a Place and
  //   its index among the inputs or among the results, or
  //   for Place::kOther its dtype, device (wire number), offset, rank, sizes and strides.
  // Throws Error if the stop is in use, or if too many instructions were described and not released.
  std::vector<int64_t> end(int64_t stop, absl::Span<const Tensor> inputs, absl::Span<const Tensor> results);
  enum Place : int64_t { kInput, kResult, kOther };
  // Maximum number of nodes of one instruction: the distance between the stops of two instructions.
  static constexpr size_t kMaxNodes = size_t{1} << 20;

  // The tensors at Place::kOther, in the order of the description. Throws Error if the stop is unknown.
  const std::vector<Tensor>& values(int64_t stop) const;
  // Frees the nodes' saved tensors, which the client supplies from now on. No effect if the stop is unknown.
  void release(int64_t stop);
  // Ends the collection without an effect.
  void cancel() { watched_.clear(); }

  uint64_t host_bytes() const { return described_.size() * kDescribedBytes; }

 private:
  friend class TapeImage;
  static constexpr size_t kMaxDescribed = 4096;
  static constexpr uint64_t kDescribedBytes = 256;
  struct Described {
    std::vector<Ref<OperatorNode>> nodes;
    std::vector<Tensor> values;
  };
  std::vector<Ref<OperatorNode>> watched_;
  absl::flat_hash_map<int64_t, Described> described_;
};

}  // namespace tt::autograd
