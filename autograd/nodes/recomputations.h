// Recomputations: the saved tensors of functions that run again in a backward pass (torch.utils.checkpoint).
//
// The client numbers a function's instructions, has a stop for all of them, and encloses each in saved_begin and
// saved_stop. In the first run the nodes keep only metadata of their saved tensors. A backward pass stops at the first
// of these nodes; the client then runs the function again, whose nodes save as usual. Their saved tensors are collected
// here, and the pass takes them over when it continues. The nodes of a first run may keep their calls' results: a next
// run takes these instead of executing the calls. Owned by the Tape; used on the session's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autograd/nodes/operator_node.h"

namespace tt::autograd {

class Recomputations {
 public:
  // What the nodes of one run have saved, by OperatorNode::recomputed_at().
  using Values = absl::flat_hash_map<int64_t, std::vector<SuppliedTensor>>;

  // Starts instruction `call` of a function. `collects`: of its next run, whose instruction 0 discards what an earlier
  // run with this stop has collected. `keeps`: the first run keeps the results, and the next run uses them. Throws
  // Error if a number is out of range, or if too many runs were not taken.
  void begin(int64_t stop, int64_t call, bool collects, bool keeps);
  // Adds a node of the instruction, which has saved its tensors, or their metadata.
  void add(OperatorNode& node);
  // Returns the place of a call's results among those of the function, or -1 if they are not kept. Called for each
  // recorded call of the instruction, before it is executed.
  int64_t next_results(const Call& call);
  // Keeps the results of a call of the first run.
  void keep(int64_t at, const Call& call, OperatorNode& node);
  // In a next run, sets the results to those that the first run has kept. Returns false if it has not, if they were
  // changed in place since then, or if their metadata is not the call's.
  bool reuse(int64_t at, Call& call) const;
  // Ends the instruction. No effect if none has begun.
  void end() { stop_ = 0; }

  bool contains(int64_t stop) const { return collected_.contains(stop); }
  bool empty() const { return collected_.empty(); }
  // Returns and forgets what the next run of a function has saved. Throws Error if there was none.
  Values take(int64_t stop);
  // No effect if the stop is unknown.
  void drop(int64_t stop);

  uint64_t host_bytes() const { return (num_tensors_ + kept_.size()) * kTensorBytes; }

 private:
  static constexpr size_t kMaxRuns = 4096;
  static constexpr int64_t kMaxCalls = int64_t{1} << 40, kMaxNodes = int64_t{1} << 20;
  static constexpr uint64_t kTensorBytes = 256;
  static constexpr size_t kMinSweep = 1024;

  int64_t stop_ = 0;                            // of the current instruction's function; 0: none
  int64_t call_ = 0, nodes_ = 0, results_ = 0;  // number of the instruction; of its nodes and recorded calls so far
  bool collects_ = false, keeps_ = false;
  absl::flat_hash_map<int64_t, Values> collected_;
  uint64_t num_tensors_ = 0;
  // By stop and place. The nodes own the results. Entries of nodes that were freed are removed when there are
  // sweep_at_.
  absl::flat_hash_map<std::pair<int64_t, int64_t>, std::weak_ptr<const KeptResults>> kept_;
  size_t sweep_at_ = kMinSweep;
};

}  // namespace tt::autograd
