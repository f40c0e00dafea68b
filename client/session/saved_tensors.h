// SavedTensorHooks: where the operations that a thread records save tensors for backward (torch.autograd.graph's
// saved_tensors_hooks, save_on_cpu and allow_mutation_on_saved_tensors).
//
// Passed to Session::call() in CallOptions. A call with client hooks waits for the engine once, which describes the
// tensors that it has saved; the other modes never wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "client/session/tensor.h"
#include "engine/schema/meta.h"

namespace tt::client {

class SavedTensorHooks {
 public:
  enum class Mode : int64_t { kClient = 0, kOnCpu = 1, kCopied = 2 };  // numbers of saved_begin
  explicit SavedTensorHooks(Mode mode) : mode_(mode) {}
  virtual ~SavedTensorHooks() = default;
  Mode mode() const { return mode_; }

  // Called in kClient only. pack() stores a tensor and returns what unpack() needs to return it; both may throw, and
  // may issue calls.
  virtual std::shared_ptr<void> pack(const Tensor& tensor) = 0;
  virtual Tensor unpack(const std::shared_ptr<void>& packed, bool create_graph) = 0;

 private:
  const Mode mode_;
};

// The tensors that require grad and that calls of one thread have used, each once, in the order of their first use: those
// that existed before, and leaves. Not thread-safe.
class UsedTensors {
 public:
  UsedTensors();
  void add(const Tensor& tensor);
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  const uint64_t start_;  // GraphNode::sequence() when the object was made: results of later calls are not noted
  absl::flat_hash_set<const Handle*> known_;
  std::vector<Tensor> tensors_;
};

// The tensors that one node in the engine has saved, in their order.
struct PackedNode {
  struct Value {
    std::shared_ptr<void> packed;
    uint64_t storage;  // of the tensor that was packed, and its version then
    uint32_t version;
  };
  int64_t stop;
  std::shared_ptr<SavedTensorHooks> hooks;
  std::vector<Value> values;

  // Throws Error if the client's code returns a tensor that was changed in place since it was saved.
  std::vector<Tensor> unpack(bool create_graph) const;
};

// Calls pack() for the tensors in the engine's description (autograd/nodes/saved_nodes.h). `others` are the described
// tensors that are neither inputs nor results.
std::vector<PackedNode> pack_saved(const std::shared_ptr<SavedTensorHooks>& hooks, int64_t stop,
                                   absl::Span<const int64_t> description, absl::Span<const Tensor> inputs,
                                   absl::Span<const Tensor> results, absl::Span<const Tensor> others);
// Returns the metadata of these tensors. Throws Error if the description is malformed.
std::vector<TensorMeta> described_others(absl::Span<const int64_t> description);

}  // namespace tt::client
