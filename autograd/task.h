// Task: one backward pass. It runs at once, or in pieces, stopping wherever the client's own code
// takes part.
//
// Used by one session's thread. Nodes run when all that depends on them has: of those that are
// ready the latest recorded first, leaves before all. Only what leads to something asked for runs.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "autograd/node.h"
#include "engine/schema/arg.h"
#include "engine/schema/error.h"

namespace tt::autograd {

struct TaskOptions {
  bool accumulate = true;     // into leaves' .grad; else gradients are only captured
  bool retain_graph = false;  // what nodes saved is kept for another pass
  bool create_graph = false;  // the pass itself is recorded
};

class Task {
 public:
  // `gradients` are the roots' own: empty, or one entry each; where one is missing the root must
  // have one element. With `accumulate` only the leaves among `captures` get theirs, all that are
  // reached where it is empty. Throws Error on roots that do not require grad or gradients that
  // do not fit.
  Task(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, absl::Span<const Tensor> captures,
       TaskOptions options);

  // Runs until the stop is what comes next; its gradients, one for each result of a function (zeros
  // where none came), or the one of a hook. Throws Error where the pass never gets there.
  // A client that only guesses what its recorded gradients are made of may name a stop that the pass does not come to:
  // it gets zeros of `shapes` (dtype, rank, sizes, ...), and what it feeds there is dropped. Without shapes: Error.
  Tensors run_until(int64_t stop, SizesView shapes = {});
  // What the client's code made of it: a function's gradients for its inputs, or the one that
  // replaces a hook's (undefined: as it was).
  void feed(int64_t stop, absl::Span<const Tensor> gradients);
  // Runs to the end. One result a capture: the leaf's .grad where gradients accumulate, else what
  // arrived; zeros where nothing did. Hooks that nobody asked for leave gradients as they are.
  Tensors finish(absl::Span<const Tensor> captures);

 private:
  struct State {
    Ref<Node> node;
    Gradients gradients;        // what has arrived so far, by output
    uint32_t dependencies = 0;  // edges that have not delivered yet
    uint32_t hooks_done = 0;
    bool needed = false;
    bool captured = false;
  };
  struct Parked {
    uint32_t state;
    uint32_t output;  // that a hook is on
  };
  struct Capture {
    uint32_t state;
    uint32_t output;
    Tensor gradient;
  };

  void discover();
  std::vector<uint32_t> oldest_first() const;
  void count_dependencies();
  uint32_t claim(Node* node);             // its state, made when first met
  uint32_t find(const Node* node) const;  // kNone where it has none
  bool leads_on(const State& state) const;
  void check_root(const Tensor& root, const Tensor& gradient) const;
  void start_at(const Tensor& root, Tensor gradient);
  void add_capture(const Tensor& tensor);
  Tensor capture_of(const Tensor& tensor) const;

  // Runs what is ready; true where it came to `stop`.
  bool advance(int64_t stop);
  // Takes one node as far as it goes; true where it came to `stop`. Others' stops are parked.
  bool visit(uint32_t index, int64_t stop);
  int64_t meets_hook(uint32_t index);
  void keep_captured(uint32_t index);
  void run(State& state);
  void lose_gradients(const Error& error);
  void deliver(const Edge& edge, Tensor gradient);
  void check_finite(const Node& node, const Gradients& results) const;
  void make_ready(uint32_t index);

  static constexpr uint32_t kNone = ~uint32_t{0};
  TaskOptions options_;
  uint64_t id_;
  std::vector<State> states_;
  std::vector<uint32_t> ready_;  // a heap, the latest recorded first
  std::vector<Capture> captures_;
  absl::flat_hash_map<int64_t, Parked> parked_;           // by stop
  absl::flat_hash_set<int64_t> missed_;                   // stops that were asked for in vain
  absl::flat_hash_map<const Node*, uint32_t> elsewhere_;  // nodes that another pass is at
  bool capture_all_ = false;
};

}  // namespace tt::autograd
