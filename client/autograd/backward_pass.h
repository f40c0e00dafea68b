// BackwardPass: client side of one backward pass. Finds the nodes of the client's graph that the roots reach, and
// issues the instructions that run the engine's tape.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "client/session/graph.h"
#include "client/session/recomputation.h"
#include "client/session/session.h"

namespace tt::client {

struct BackwardOptions {
  bool accumulate = true;
  bool retain_graph = false;
  bool create_graph = false;
  uint32_t site = 0;
  bool only_captures = false;  // with `accumulate`: only the captured leaves accumulate
};

class BackwardPass {
 public:
  // Throws Error if a root does not require grad, or a gradient is missing or does not match.
  BackwardPass(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, BackwardOptions options);

  // Returns the reached leaves, and the results that retain their gradient.
  std::vector<Tensor> tensors_with_grad() const;
  bool reaches(const Tensor& tensor) const;
  // Returns what run_again() has returned for the pass that runs client code in this thread; calls it if it was not
  // called yet. Without such a pass, or unless `in_pass`, calls it apart from passes.
  static std::shared_ptr<void> recompute(Recomputation& function, bool in_pass);
  // In the client-side function at `stop`, of a pass that is recorded, returns a view of a saved tensor with the
  // history of result `place`, or input ~`place`, of the function. Otherwise returns the tensor.
  static Tensor history_in_pass(int64_t stop, int64_t place, const Tensor& tensor);
  // Issues the pass. Returns one result per capture; every capture must be reached. A result is null if client-side
  // functions returned no gradient for it. Throws Error if the pass needs saved tensors that were freed.
  std::vector<Tensor> run(absl::Span<const Tensor> captures);

 private:
  void discover();
  void visit_edges(size_t first, std::vector<const GraphNode*>* passes);
  void visit_edges_of(const GraphNode& node);
  void visit(GraphNode* node);
  uint32_t index_of(const GraphNode* node) const;  // kNone if not reached
  // Whether the engine's pass reaches the node too, unless functions return no gradients.
  bool is_certain(uint32_t index) const { return index < num_certain_; }
  bool is_needed(uint32_t index) const { return needed_.empty() || needed_[index]; }
  bool runs(uint32_t index) const { return runs_.empty() || runs_[index]; }
  void find_needed(absl::Span<const Tensor> captures);
  // Whether the pass runs client-side functions or hooks.
  bool has_client_code() const;
  bool has_untraceable_code() const;
  void check_traced() const;
  void run_hooks_of_leaf(const Handle& leaf, Tensor* gradient) const;
  void check_not_freed(absl::Span<const Tensor> captures);
  // Marks nodes as freed: their saved tensors are released by this pass.
  void mark_freed();

  std::vector<Tensor> issue(absl::Span<const Tensor> captures);
  // Issues the pass in steps, in the engine's order: the latest recorded node first.
  std::vector<Tensor> issue_steps(absl::Span<const Tensor> captures);
  std::vector<uint32_t> indices_latest_first() const;
  void begin(absl::Span<const Tensor> captures);
  void visit_node(GraphNode& node);
  void run_hook(const GraphHook& hook, bool is_certain);
  void supply_saved(const GraphNode& node);
  std::shared_ptr<void> recompute_for(Recomputation& function, bool is_reached);
  bool find_defined(Tensors& found, std::vector<Tensor>& gradients);
  std::vector<Tensor> run_node_hook(const GraphHook& hook);
  void run_function(GraphNode& node, bool is_certain, const GraphExtras& function, absl::Span<const GraphHook> hooks);
  Tensor with_history(int64_t place, const Tensor& tensor);
  void record_arrival(const GraphEdge& edge);
  Tensors run_until(int64_t stop, absl::Span<const TensorMeta> metas);
  void pass_tensors(int64_t stop, absl::Span<const Tensor> tensors);
  void pass_gradients(int64_t stop, absl::Span<const Tensor> gradients);
  std::vector<Tensor> end(absl::Span<const Tensor> captures);

  Tensors call(uint16_t op, Args args, absl::Span<const TensorMeta> metas);
  // Returns the metadata of a gradient of `of`.
  TensorMeta gradient_meta(const TensorMeta& of) const;
  std::vector<TensorMeta> gradient_metas(absl::Span<const Tensor> of) const;
  // With create_graph, makes gradients depend on this one.
  void depend_on(const Tensor& gradient);
  // With create_graph, makes gradients depend on all nodes that the pass visited.
  void attach_history(absl::Span<const Tensor> results);

  static constexpr uint32_t kNone = ~uint32_t{0};
  using NodeOutput = std::pair<const GraphNode*, uint32_t>;
  BackwardOptions options_;
  std::vector<Tensor> roots_;
  std::vector<Tensor> gradients_;
  Ref<Session> session_;
  std::vector<Ref<GraphNode>> nodes_;  // all reached nodes
  uint32_t num_certain_ = 0;           // the first nodes, which are reached without the edges of recorded passes
  // Whether gradients may arrive at the inputs of a node in the engine, although the node passes none to them.
  bool has_recorded_passes_ = false;
  uint64_t id_;  // marks nodes as visited
  // Index of each node, set before client code runs, because a nested pass overwrites GraphNode::visit_index.
  absl::flat_hash_map<const GraphNode*, uint32_t> index_;
  std::vector<bool> needed_;                   // whether gradients reach the node; empty: all nodes
  std::vector<bool> runs_;                     // whether the node passes them on; empty: all nodes
  std::vector<bool> reached_;                  // whether any gradient has arrived at the node
  absl::flat_hash_set<NodeOutput> arrived_;    // (node, output) pairs that received a gradient
  absl::InlinedVector<GraphEdge, 4> history_;  // edges that gradients depend on, with create_graph
  // Functions that have run again, and what they have returned.
  absl::flat_hash_map<std::shared_ptr<Recomputation>, std::shared_ptr<void>> recomputed_;
  GraphNode* function_ = nullptr;  // the client-side function that runs
  int64_t task_ = 0;
  Tensor progress_;
};

}  // namespace tt::client
