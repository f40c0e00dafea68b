#include "client/session/recomputation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session/graph.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

// A composite operator has the nodes of the operators that compute it. The client does not know these, so they may
// save.
bool may_save(const Op& op) { return op.is_composite || !op.saved.empty(); }

}  // namespace

std::string Recomputation::Call::describe() const {
  const Op* const found = find_op(op);
  return absl::StrCat(found ? std::string(found->name) : "an operator", " of ", tt::describe(result));
}

Recomputation::Recomputation(bool checks_calls, bool lists_calls)
    : checks_calls_(checks_calls), lists_calls_(lists_calls), stop_(next_stop(1)) {}

std::shared_ptr<RecomputationRun> Recomputation::first_run() {
  return std::make_shared<RecomputationRun>(SavedTensorHooks::Mode::kNowhere, shared_from_this(), nullptr);
}

std::shared_ptr<RecomputationRun> Recomputation::next_run(std::function<void()> on_complete) {
  return std::make_shared<RecomputationRun>(SavedTensorHooks::Mode::kTwice, shared_from_this(), std::move(on_complete));
}

void Recomputation::release() {
  if (!session_) return;
  const Arg args[] = {stop_};
  session_->call_with_metas(*find_op(op_id::kSavedRelease), args, {}, {.grad = false});
}

void Recomputation::fail_with_calls(std::string message) {
  for (size_t i = 0; lists_calls_ && i < calls_.size(); ++i) {
    absl::StrAppend(&message, i == 0 ? "\nCalls of the first run that save tensors:" : "", "\n  ", i + 1, ": ",
                    calls_[i].describe());
  }
  throw_error(message);
}

RecomputationRun::RecomputationRun(Mode mode, std::shared_ptr<Recomputation> function,
                                   std::function<void()> on_complete)
    : SavedTensorHooks(mode), function_(std::move(function)), on_complete_(std::move(on_complete)) {}

void RecomputationRun::check_complete() const {
  if (is_complete()) return;
  function_->fail_with_calls(absl::StrCat("it made ", function_->calls_.size(), " calls that save tensors, and ", next_,
                                          " when it runs again; call ", next_ + 1, " was ",
                                          function_->calls_[next_].describe()));
}

int64_t RecomputationRun::begin(const Op& op, const TensorMeta* result) {
  if (result == nullptr || !(may_save(op) || keeps_results_)) return -1;
  const std::vector<Recomputation::Call>& calls = function_->calls_;
  if (mode() == Mode::kNowhere) return static_cast<int64_t>(calls.size());
  if (is_complete()) return -1;
  const Recomputation::Call& first = calls[next_];
  const bool is_same = op.id == first.op && result->dtype == first.result.dtype &&
                       result->sizes == first.result.sizes && result->device == first.result.device;
  if (function_->checks_calls_ && !is_same) {
    function_->fail_with_calls(absl::StrCat("call ", next_ + 1, " was ", first.describe(), ", and is ",
                                            Recomputation::Call{op.id, *result}.describe(),
                                            " when the function runs again"));
  }
  return static_cast<int64_t>(next_);
}

void RecomputationRun::end(const Op& op, const TensorMeta* result) {
  if (mode() == Mode::kNowhere)
    function_->calls_.push_back({op.id, *result});
  else
    ++next_;
}

void RecomputationRun::recorded(absl::Span<const Tensor> results) {
  if (!function_->session_) function_->session_ = results[0]->session;
  if (mode() == Mode::kNowhere || !is_complete()) return;
  function_->last_result_ = results[0];
  on_complete_();
}

}  // namespace tt::client
