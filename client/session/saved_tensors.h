// SavedTensorHooks: where the operations that a thread records save tensors for backward (torch.autograd.graph's
// saved_tensors_hooks, save_on_cpu and allow_mutation_on_saved_tensors, and torch.utils.checkpoint).
//
// Passed to Session::call() in CallOptions. A call with client hooks waits for the engine once, which describes the
// tensors that it has saved; the other modes never wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "client/session/tensor.h"
#include "engine/schema/meta.h"
#include "engine/schema/op.h"

namespace tt::client {

class Recomputation;

class SavedTensorHooks {
 public:
  // Numbers of saved_begin. kNowhere and kTwice are the first and the next runs of a Recomputation's function.
  enum class Mode : int64_t { kClient = 0, kOnCpu = 1, kCopied = 2, kNowhere = 3, kTwice = 4 };
  explicit SavedTensorHooks(Mode mode) : mode_(mode) {}
  virtual ~SavedTensorHooks() = default;
  Mode mode() const { return mode_; }

  // In kNowhere and kTwice, the function that runs; else null.
  virtual Recomputation* recomputation() { return nullptr; }
  // Whether the first run keeps the results of calls for the next runs.
  virtual bool keeps_results() const { return false; }
  // Called before a call is issued whose first result, which may be null, is `result`. Returns the call's number for
  // saved_begin, or -1 if the call is issued without these hooks. May throw.
  virtual int64_t begin(const Op&, const TensorMeta* /*result*/) { return 0; }
  // Called after the call was issued, unless begin() has returned -1.
  virtual void end(const Op&, const TensorMeta* /*result*/) {}
  // Called after the call was recorded, unless begin() has returned -1. May throw, so that the call's results are lost.
  virtual void recorded(absl::Span<const Tensor> /*results*/) {}

  // Called in kClient only. pack() stores a tensor and returns what unpack() needs to return it; both may throw, and
  // may issue calls.
  virtual std::shared_ptr<void> pack(const Tensor& tensor) = 0;
  virtual Tensor unpack(const std::shared_ptr<void>& packed, bool create_graph) = 0;

 private:
  const Mode mode_;
};

// The tensors that one node in the engine has saved, in their order; or a call of a Recomputation's first run, without
// values, whose nodes all have the function's stop.
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
