// GraphTask: one backward pass. Runs to its end, or in steps that stop where the client's code must run.
//
// Used by one session's thread. A stop is a client function, a client hook, a node whose saved tensors the client
// stores, or all nodes of a client's function whose saved tensors are recomputed; the client's number identifies it.
// A node runs when all nodes that depend on it have run. Of the ready nodes, leaves run first, then the latest
// recorded. Nodes that lead to no requested gradient are skipped.
//
// A node whose gradient is a collective throws Suspended, which run_until() and finish() pass on; called again with the
// same arguments, they continue at that node.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "autograd/nodes/hooked_call.h"
#include "autograd/nodes/node.h"
#include "autograd/nodes/operator_node.h"
#include "autograd/nodes/tape.h"
#include "engine/program/deferred_calls.h"
#include "engine/schema/arg.h"
#include "engine/schema/error.h"

namespace tt::autograd {

struct GraphTaskOptions {
  bool accumulate = true;     // add to the leaves' .grad; otherwise only capture gradients
  bool retain_graph = false;  // keep saved tensors for another pass
  bool create_graph = false;  // record the pass itself
};

class GraphTask final : public Pass {
 public:
  // `gradients` are the gradients of the roots: empty, or one entry per root. A root without a gradient must have one
  // element. With `accumulate`, only the leaves among `captures` accumulate, or all reached leaves if `captures` is
  // empty. Throws Error if a gradient is required and missing, or has the wrong shape.
  GraphTask(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, absl::Span<const Tensor> captures,
            GraphTaskOptions options);

  // Runs until the stop numbered `stop` is next and returns its gradients: for a function, one per result (zeros if
  // none arrived, or the empty tensor that `shapes` describes as boolean); for a hook, the one that the hook reads; for
  // saved tensors that the client stores or recomputes, a false. If the pass does not reach `stop`, returns zeros of
  // `shapes` (dtype, rank, sizes, ...) and ignores a later resume_with() for `stop`, or throws Error if `shapes` is
  // empty. Clients need this because they can only guess the graph of recorded gradients.
  Tensors run_until(int64_t stop, SizesView shapes = {});
  // Passes in the client's result for `stop`: for a function, the gradients of its inputs; for a hook, the gradient
  // that replaces the one that the hook read (undefined if the hook does not replace it); for a node whose saved
  // tensors the client stores, the result of run_until() and these tensors. For nodes whose saved tensors are
  // recomputed, takes what the function's next run has saved (autograd/nodes/recomputations.h), whether or not the pass
  // has reached one of them.
  void resume_with(int64_t stop, absl::Span<const Tensor> gradients);
  // Returns a view of the tensor with the history of result `place`, or input ~`place`, of the client's function at
  // `stop`, which the pass has reached. Throws Error unless the tensor has its sizes and dtype. Returns a view without
  // history if run_until() has found that the pass does not reach `stop`.
  Tensor with_history(int64_t stop, int64_t place, const Tensor& tensor) const;
  // Runs to the end. Returns one tensor per capture: the leaf's .grad with `accumulate`, else the gradient that
  // arrived, or zeros. Hooks that the client has not requested leave gradients unchanged.
  Tensors finish(absl::Span<const Tensor> captures);
  void invalidate_gradients(const Error& error) override;
  // Whether a node that the pass runs needs saved tensors that were freed.
  bool needs_freed_tensors() const;

 private:
  struct State {
    Ref<Node> node;
    Gradients gradients;                             // sum of the gradients received so far, by output
    uint32_t dependencies = 0;                       // edges that have not delivered a gradient yet
    std::unique_ptr<const std::vector<Hook>> hooks;  // copied at the first visit; null if there are none
    uint32_t hooks_done = 0;
    std::vector<SuppliedTensor> supplied;  // saved tensors that the client stores or recomputes, for the next run
    bool requested = false;                // leads to a capture
    bool needed = false;                   // receives gradients: requested, or leads to a client function or hook
    bool runs = false;  // passes gradients on; a tensor that grad() was asked for is differentiated no further
    bool captured = false;
    bool captures_stored = false;
  };
  struct ClientCallback {
    uint32_t state;
    uint32_t output;  // for a hook of a tensor: the output whose gradient it reads
    Hook::Kind kind = Hook::Kind::kTensor;
    const HookedCall* call = nullptr;  // for a hook of kAfter
  };
  // The gradients that hooks of kAfter hold back.
  struct HeldCall {
    std::shared_ptr<const HookedCall> call;
    std::vector<int64_t> stops;  // copied at the first visit
    size_t stops_done = 0;
    uint32_t nodes_left = 0;
    std::vector<Tensor> inputs;
    std::vector<uint32_t> deliveries;  // per input: how many edges deliver to it
    std::vector<Tensor> outputs;       // the gradients of the results
  };
  struct Capture {
    uint32_t state;
    uint32_t output;
    Tensor gradient;
  };

  void discover();
  std::vector<uint32_t> oldest_first() const;
  void count_dependencies();
  uint32_t claim(Node* node);             // returns the index of the node's state, created on first use
  uint32_t find(const Node* node) const;  // returns kNone if the node has no state
  bool leads_to(bool State::*property, const State& state) const;
  void check_root(const Tensor& root, const Tensor& gradient) const;
  void start_at(const Tensor& root, Tensor gradient);
  void add_capture(const Tensor& tensor);
  Tensor capture_of(const Tensor& tensor) const;
  void own_retained(const Tensor& tensor, Tensor* gradient);

  // Runs ready nodes. Returns true if `stop` is reached.
  bool advance(int64_t stop);
  // Runs one node's hooks and then the node. At the next stop, adds the stop to client_callbacks_ and returns; the
  // result is true if the stop is `stop`.
  bool visit(uint32_t index, int64_t stop);
  int64_t add_pending_hook(uint32_t index, Hook::Kind kind);
  void store_captured(uint32_t index);
  // Runs the node. Returns the stop of a hook that runs after it, or 0.
  int64_t run(uint32_t index);
  HeldCall& held_call(const std::shared_ptr<HookedCall>& call);
  int64_t hold(uint32_t index, const std::shared_ptr<HookedCall>& call, Gradients outputs, Gradients results);
  // Returns the stop of the next hook of the call. Delivers the gradients and returns 0 if none is left.
  int64_t next_after(HeldCall& held);
  Tensors gradients_at(const ClientCallback& pending) const;
  void resume_before(const ClientCallback& pending, absl::Span<const Tensor> gradients);
  void resume_after(const ClientCallback& pending, absl::Span<const Tensor> gradients);
  void skip_node(uint32_t index);  // passes on no gradients
  void skip(int64_t stop);
  void run_supplied(State& state, Gradients& results);
  void find_recomputed();
  void take_recomputed(int64_t stop);
  void deliver(const Edge& edge, Tensor gradient);
  void check_finite(const Node& node, absl::Span<const Tensor> results) const;
  void make_ready(uint32_t index);
  // Whether the calls of the pass's formulas may be executed later.
  bool may_defer() const;
  // Executes the deferred calls after an error of another call, so that only what depends on that call is missing.
  void flush_after_error();
  // Throws the error that has left gradients without values, if there was one.
  void check_not_failed() const;

  static constexpr uint32_t kNone = ~uint32_t{0};
  GraphTaskOptions options_;
  uint64_t id_;
  std::vector<State> states_;
  std::vector<uint32_t> ready_;  // a heap: leaves first, then the latest recorded
  std::vector<Capture> captures_;
  absl::flat_hash_map<int64_t, ClientCallback> client_callbacks_;  // the stops that the pass has reached, by number
  // Nodes whose saved tensors are recomputed, by stop: all that run, found at the first such stop, and those that wait.
  absl::flat_hash_map<int64_t, std::vector<uint32_t>> recomputed_states_, waiting_states_;
  absl::flat_hash_set<int64_t> unreached_stops_;              // requested stops that the pass does not reach
  absl::flat_hash_map<const Node*, uint32_t> nested_states_;  // states of nodes that another pass has marked
  absl::flat_hash_map<const HookedCall*, std::unique_ptr<HeldCall>> held_calls_;
  bool capture_all_ = false;
  std::unique_ptr<DeferredCalls> deferred_;  // during advance()
  bool failed_ = false;                      // gradients have no values
  std::shared_ptr<const Error> failure_;     // why; null if it was no Error
};

}  // namespace tt::autograd
