#include "client/session/saved_call.h"

#include <algorithm>
#include <utility>

#include "client/session/encode.h"
#include "client/session/graph.h"
#include "client/session/operand.h"
#include "client/session/recomputation.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

constexpr int64_t kStopsPerCall = int64_t{1} << 20;

v1::Instruction* add(Link::Appending& appending, std::string_view name, Args args) {
  const Op& op = *find_op(name);
  v1::Instruction* instruction = appending.add_instruction();
  instruction->set_op(op.id);
  encode_args(op, args, instruction);
  return instruction;
}

}  // namespace

std::optional<SavedCall> SavedCall::begin_call(const std::shared_ptr<SavedTensorHooks>& hooks, const Op& op, Args args,
                                               absl::Span<const Tensor> results) {
  const int64_t number = hooks->begin(op, results.empty() ? nullptr : results[0].get());
  return number < 0 ? std::nullopt : std::optional(SavedCall(hooks, args, number));
}

void SavedCall::end_call(const Op& op, absl::Span<const Tensor> results) const {
  hooks_->end(op, results.empty() ? nullptr : results[0].get());
}

SavedCall::SavedCall(std::shared_ptr<SavedTensorHooks> hooks, Args args, int64_t number)
    : hooks_(std::move(hooks)), number_(number), keeps_results_(hooks_->keeps_results()) {
  if (const Recomputation* function = hooks_->recomputation()) stop_ = function->stop();
  if (!is_stored()) return;
  for (const Arg& arg : args) {
    for_each_tensor(arg, [&](const Handle* t) { inputs_.push_back(Tensor(const_cast<Handle*>(t))); });
  }
  stop_ = next_stop(kStopsPerCall);
}

const Op& SavedCall::saved_begin() {
  static const Op& op = *find_op(op_id::kSavedBegin);
  return op;
}

std::array<Arg, 3> SavedCall::begin_args() const {
  const bool is_recomputed = hooks_->recomputation() != nullptr;
  const int64_t mode = static_cast<int64_t>(hooks_->mode()) + (keeps_results_ ? 2 : 0);  // modes 5 and 6 of saved_begin
  return {mode, is_recomputed ? stop_ : 0, is_recomputed ? number_ : 0};
}

void SavedCall::begin(Link::Appending& appending) const { add(appending, "saved_begin", begin_args()); }

void SavedCall::end(Link::Appending& appending, Ref<Session> session, absl::Span<const Tensor> results) {
  if (!is_stored()) return static_cast<void>(add(appending, "saved_stop", {}));
  const ListArg inputs(inputs_), made(results);
  const Arg args[] = {stop_, inputs.arg(), made.arg()};
  v1::Instruction* instruction = add(appending, "saved_end", args);
  TensorMeta meta;
  meta.dtype = DType::kInt64;
  description_ = make_ref<Handle>(meta, std::move(session), 0);
  description_->id = appending.name(1);
  instruction->set_result(description_->id);
}

std::vector<int64_t> SavedCall::read_description(Link& link) {
  v1::ReadResult answer = std::move(link.read({&description_->id, 1}, /*meta_only=*/false)[0]);
  if (answer.has_error()) throw link.remote_error(answer.error());
  decode_description(answer.tensor(), description_.get());
  std::vector<int64_t> numbers(static_cast<size_t>(description_->numel()));
  const absl::Span<char> bytes(reinterpret_cast<char*>(numbers.data()), numbers.size() * sizeof(int64_t));
  if (answer.data().size() == bytes.size())
    std::copy(answer.data().begin(), answer.data().end(), bytes.begin());
  else
    link.download(description_->id, bytes);
  return numbers;
}

void SavedCall::store(Session& session, absl::Span<const int64_t> description, absl::Span<const Tensor> results,
                      GraphNode* node) const {
  if (hooks_->mode() == SavedTensorHooks::Mode::kNowhere) node->mutable_extras().packed.push_back({stop_, hooks_, {}});
  if (!description.empty()) {
    const Arg stop[] = {stop_};
    const std::vector<TensorMeta> metas = described_others(description);
    Tensors others;
    if (!metas.empty()) others = session.call_with_metas(*find_op("saved_values"), stop, metas);
    session.call_with_metas(*find_op("saved_release"), stop, {});
    node->mutable_extras().packed =
        pack_saved(hooks_, stop_, description, inputs_, results, absl::MakeConstSpan(others));
  }
  hooks_->recorded(results);
}

}  // namespace tt::client
