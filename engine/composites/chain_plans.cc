#include "engine/composites/chain_plans.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/hash/hash.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/schema/default_float.h"
#include "engine/tensor/new_result.h"

namespace tt::composites {

ChainPlan::ChainPlan(std::unique_ptr<PreparedChain> loop, SizesView code, size_t inputs, std::vector<TensorMeta> kept,
                     const TensorMeta& out)
    : loop_(std::move(loop)),
      code_(code.begin(), code.end()),
      steps_(read_chain(code_, inputs)),
      kept_(std::move(kept)),
      out_(out) {}

bool ChainPlan::run(const Tensors& inputs, Tensors* results) const {
  CallScope& scope = CallScope::current();
  if (scope.observes_kernels() || cancel_requested()) return false;
  try {
    for (const TensorMeta& meta : kept_) results->push_back(new_result(meta));
    Tensor out = new_result(out_);
    if (!loop_->run(inputs, *results, out)) {
      results->clear();
      return false;
    }
    const CodedStep& last = steps_.back();
    if (last.op->is_pointwise) {
      results->push_back(std::move(out));
    } else {
      absl::InlinedVector<Arg, 4> args = last.args;
      args[0] = Arg(out.get());
      Call call;
      call.op = last.op;
      call.args = args;
      Dispatcher::instance().dispatch(call);
      if (steps_[steps_.size() - 2].kept) results->push_back(std::move(out));
      results->push_back(std::move(call.outputs[0]));
    }
  } catch (const std::exception&) {
    results->clear();  // the chain runs without the plan, and reports the error
    return false;
  }
  scope.fused += steps_.size() - 1;
  return true;
}

ChainPlans& ChainPlans::instance() {
  static auto* const plans = new ChainPlans;  // calls may outlive main
  return *plans;
}

bool ChainPlans::key_of(const Tensors& inputs, SizesView code, ChainKey* key) {
  std::vector<int64_t>& words = key->words;
  words.reserve(code.size() + 8 * inputs.size());
  words.push_back(int64_t{CallScope::current().grad_enabled} | static_cast<int64_t>(default_float()) << 8 |
                  static_cast<int64_t>(inputs.size()) << 16);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorMeta& meta = *inputs[i].get();
    if (meta.device.type != DeviceType::kCPU || meta.numel() > kMaxElements) return false;
    // The loop reads a tensor that occurs several times once.
    const auto first = std::find_if(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.get() == &meta; });
    words.push_back(static_cast<int64_t>(meta.dtype) | int64_t{meta.requires_grad} << 8 |
                    int64_t{meta.is_number} << 9 | static_cast<int64_t>(first - inputs.begin()) << 16 |
                    static_cast<int64_t>(meta.sizes.size()) << 32);
    words.insert(words.end(), meta.sizes.begin(), meta.sizes.end());
    words.insert(words.end(), meta.strides.begin(), meta.strides.end());
  }
  if (inputs.empty() || !append_computation(code, &words)) return false;
  key->hash = absl::HashOf(absl::MakeConstSpan(words));
  return true;
}

std::shared_ptr<const ChainPlan> ChainPlans::find(const ChainKey& key, bool* wanted) {
  *wanted = false;
  MutexLock lock(mutex_);
  if (entries_.size() >= kMaxEntries) forget();
  Entry& entry = entries_[key.hash];
  if (entry.occurrences == 0) entry.words = key.words;
  if (entry.words != key.words) return nullptr;
  if (entry.plan || entry.occurrences > kMinOccurrences) return entry.plan;
  *wanted = ++entry.occurrences == kMinOccurrences;
  return nullptr;
}

void ChainPlans::forget() {
  absl::erase_if(entries_, [](const auto& entry) { return !entry.second.plan; });
  if (entries_.size() > kMaxPlans) entries_.clear();
}

void ChainPlans::set(const ChainKey& key, std::shared_ptr<const ChainPlan> plan) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key.hash);
  if (found == entries_.end() || found->second.words != key.words) return;
  found->second.plan = std::move(plan);
  found->second.occurrences = kMinOccurrences + 1;
}

}  // namespace tt::composites
