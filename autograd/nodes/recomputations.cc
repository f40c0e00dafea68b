#include "autograd/nodes/recomputations.h"

#include <algorithm>
#include <utility>

#include "autograd/nodes/tape.h"
#include "engine/dispatch/view.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::autograd {
namespace {

// Calls that are executed in each run: a random one advances the generator, a view refers to its argument, and the
// sizes of dynamic results are not known. Conversions cost less than their results take: autocast's, also of weights.
bool may_keep(const Op& op) { return !op.is_random && !op.is_view && !op.is_dynamic && op.id != op_id::kToDtype; }

}  // namespace

void Recomputations::begin(int64_t stop, int64_t call, bool collects, bool keeps) {
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
  nodes_ = results_ = 0;
  collects_ = collects;
  keeps_ = keeps;
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

int64_t Recomputations::next_results(const Call& call) {
  if (stop_ == 0 || !keeps_) return -1;
  check(results_ < kMaxNodes, "one instruction has more than ", kMaxNodes, " calls");
  const int64_t at = call_ * kMaxNodes + results_++;
  return may_keep(*call.op) ? at : -1;
}

void Recomputations::keep(int64_t at, const Call& call, OperatorNode& node) {
  if (at < 0 || collects_) return;
  auto kept = std::make_shared<KeptResults>();
  kept->op = call.op;
  for (const Tensor& result : call.outputs) {
    if (!result) return;
    kept->tensors.push_back(detach(result));
    kept->versions.push_back(Tape::current().tracked_version(result));
  }
  if (kept_.size() >= sweep_at_) {
    absl::erase_if(kept_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max(kMinSweep, 2 * kept_.size());
  }
  kept_[{stop_, at}] = kept;
  node.keep_results(std::move(kept));
}

bool Recomputations::reuse(int64_t at, Call& call) const {
  if (at < 0 || !collects_) return false;
  const auto found = kept_.find({stop_, at});
  const std::shared_ptr<const KeptResults> kept = found == kept_.end() ? nullptr : found->second.lock();
  const auto& expected = call.inferred.outputs;
  if (!kept || kept->op != call.op || kept->tensors.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i) {
    const TensorMeta& meta = kept->tensors[i].meta();
    if (meta.sizes != expected[i].sizes || meta.dtype != expected[i].dtype || meta.device != expected[i].device)
      return false;
    if (Tape::current().tracked_version(kept->tensors[i]) != kept->versions[i]) return false;
  }
  call.outputs.clear();
  for (const Tensor& tensor : kept->tensors) call.outputs.push_back(detach(tensor));
  return true;
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
