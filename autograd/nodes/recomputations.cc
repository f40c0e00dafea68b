#include "autograd/nodes/recomputations.h"

#include "engine/schema/error.h"

namespace tt::autograd {

void Recomputations::begin(int64_t stop, int64_t call, bool collects) {
  check(stop > 0 && call >= 0 && call < kMaxCalls, "expected a stop above 0 and a call from 0 to 2^40 - 1, got ", stop,
        " and ", call);
  if (collects) {
    if (call == 0) drop(stop);
    check(collected_.contains(stop) || collected_.size() < kMaxRuns, "no backward pass has used the saved tensors of ",
          collected_.size(), " functions that ran again");
    collected_[stop];
  }
  stop_ = stop;
  call_ = call;
  nodes_ = 0;
  collects_ = collects;
}

void Recomputations::add(OperatorNode& node) {
  if (stop_ == 0 || !node.has_saved()) return;
  check(nodes_ < kMaxNodes, "one instruction has more than ", kMaxNodes, " nodes");
  const int64_t at = call_ * kMaxNodes + nodes_++;
  if (!collects_) return node.recompute_saved(stop_, at);
  std::vector<SuppliedTensor>& tensors = collected_[stop_][at];
  num_tensors_ -= tensors.size();
  tensors = node.share_saved();
  num_tensors_ += tensors.size();
}

Recomputations::Values Recomputations::take(int64_t stop) {
  auto found = collected_.find(stop);
  check(found != collected_.end(), "the function at stop ", stop, " has not run again");
  Values values = std::move(found->second);
  collected_.erase(found);
  for (const auto& [at, tensors] : values) num_tensors_ -= tensors.size();
  return values;
}

void Recomputations::drop(int64_t stop) {
  if (contains(stop)) take(stop);
}

}  // namespace tt::autograd
