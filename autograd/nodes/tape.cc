#include "autograd/nodes/tape.h"

#include "autograd/nodes/history.h"
#include "autograd/nodes/leaf.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::autograd {
namespace {
// Maximum number of unfinished passes. Passes nest: a client's backward function may call backward itself.
constexpr size_t kMaxPasses = 1024;
}  // namespace

Tape::Tape() : meter_(new TapeMeter) { meter_->enter(); }
Tape::~Tape() {
  passes_.clear();
  suspended_.reset();
  saved_ = SavedNodes();
  histories_.break_cycles();
  meter_->leave();
}

Tape& Tape::current() { return Context::current().services.get<Tape>(); }

void Tape::add(int64_t number, std::shared_ptr<Pass> pass) {
  check(passes_.size() < kMaxPasses, "too many unfinished backward passes, got ", passes_.size());
  check(passes_.emplace(number, std::move(pass)).second, "backward pass ", number, " already exists");
}

Pass& Tape::find(int64_t number) const {
  auto found = passes_.find(number);
  check(found != passes_.end(), "backward pass ", number, " does not exist");
  return *found->second;
}

void Tape::drop(int64_t number) { passes_.erase(number); }

std::string Tape::unsaved() const {
  if (!passes_.empty()) return "a backward pass waits for a function or hook of the client";
  if (!recomputations_.empty()) return "a checkpointed function runs again in a backward pass";
  return suspended_ ? "a backward pass is suspended" : "";
}

// The other arguments are not checked if one is poisoned.
void Tape::skipped(const Op& op, Args args, const Error& error, uint32_t /*site*/) {
  if (op.id == op_id::kBackwardEnd || op.id == op_id::kBackwardFeed || op.id == op_id::kBackwardUntil) {
    if (args.empty() || args[0].kind != Arg::Kind::kInt) return;
    if (auto found = passes_.find(args[0].integer); found != passes_.end()) found->second->invalidate_gradients(error);
    return;
  }
  if (op.id == op_id::kSavedBytesRestore) {
    if (!args.empty() && args[0].kind == Arg::Kind::kInt) saved_bytes_.fail(args[0].integer, error);
    return;
  }
  if (op.id == op_id::kSavedEnd) {
    saved_.cancel();
    Context::current().saved_tensors = SavedTensors::kShared;
    return;
  }
  // The instructions that change the gradients of leaves.
  const bool sets = op.id == op_id::kSetGrads || op.id == op_id::kAccumulateGrads;
  if (!sets && op.id != op_id::kBackward && op.id != op_id::kBackwardBegin) return;
  const size_t captures = sets ? 0 : op.id == op_id::kBackward ? 2 : 3;
  if (args.size() <= captures + 1 || args[captures].kind != Arg::Kind::kTensors) return;
  if (!sets && !args[captures + 1].to_bool()) return;  // the pass does not accumulate
  const auto reason = std::make_shared<const Error>(error.kind(), error.message());
  for (const TensorMeta* t : args[captures].list()) {
    if (!t) continue;
    const Tensor leaf = Tensor::from(t);
    if (!leaf->is_leaf() || !leaf.requires_grad()) continue;
    static_cast<LeafNode&>(*edge_of(leaf).node).invalidate_gradient(reason);
  }
}

}  // namespace tt::autograd
