// Pass: one backward pass as the client sees it: what the roots reach in the shadow graph, and the
// instructions that make the engine's tape do the same.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "client/graph.h"
#include "client/session.h"

namespace tt::client {

struct PassOptions {
  bool accumulate = true;
  bool retain_graph = false;
  bool create_graph = false;
  uint32_t site = 0;
};

class Pass {
 public:
  // Throws Error on roots that do not require grad, gradients that are missing or do not fit, and a
  // graph that has been used up.
  Pass(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, PassOptions options);

  // Leaves that are reached, and results that retain_grad() was asked for.
  std::vector<Tensor> collecting() const;
  bool reaches(const Tensor& tensor) const;
  // Issues the pass. One result a capture, all of which are reached; null where the client's own
  // functions gave nothing for it.
  std::vector<Tensor> run(absl::Span<const Tensor> captures);

 private:
  void discover();
  void visit(GraphNode* node);
  uint32_t index_of(const GraphNode* node) const;  // kNone where it was not reached
  bool is_needed(uint32_t index) const { return options_.accumulate || needed_[index]; }
  void find_needed(absl::Span<const Tensor> captures);
  // Whether the client's own code takes part.
  bool meets_client() const;
  // What nodes saved is gone, once this has run.
  void spend();

  std::vector<Tensor> issue(absl::Span<const Tensor> captures);
  // In pieces: the latest recorded node first, as the engine goes.
  std::vector<Tensor> drive(absl::Span<const Tensor> captures);
  std::vector<uint32_t> latest_first() const;
  void begin(absl::Span<const Tensor> captures);
  void pass(GraphNode& node);
  void pass_hook(const GraphHook& hook);
  void pass_function(const GraphNode& node, const GraphExtras& function);
  void arrive(const GraphEdge& edge);
  Tensors until(int64_t stop, absl::Span<const TensorMeta> metas);
  void feed(int64_t stop, absl::Span<const Tensor> gradients);
  std::vector<Tensor> end(absl::Span<const Tensor> captures);

  Tensors call(std::string_view op, Args args, absl::Span<const TensorMeta> metas);
  // What a gradient's handle says of itself.
  TensorMeta gradient_meta(const TensorMeta& of) const;
  std::vector<TensorMeta> gradient_metas(absl::Span<const Tensor> of) const;
  // Under create_graph gradients depend on all that the pass went through.
  void give_past(absl::Span<const Tensor> results);

  static constexpr uint32_t kNone = ~uint32_t{0};
  using Arrival = std::pair<const GraphNode*, uint32_t>;
  PassOptions options_;
  std::vector<Tensor> roots_;
  std::vector<Tensor> gradients_;
  Ref<Session> session_;
  std::vector<Ref<GraphNode>> nodes_;                      // all that is reached
  uint64_t id_;                                            // marks nodes as visited
  absl::flat_hash_map<const GraphNode*, uint32_t> index_;  // the same, where passes may nest
  std::vector<bool> needed_;                               // leads to a capture
  std::vector<bool> reached_;                              // some gradient has come to be there
  absl::flat_hash_set<Arrival> arrived_;                   // of which result
  absl::InlinedVector<GraphEdge, 4> past_;                 // what gradients are made of, under create_graph
  int64_t task_ = 0;
  Tensor progress_;
};

}  // namespace tt::client
