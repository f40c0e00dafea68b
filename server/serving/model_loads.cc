#include "server/serving/model_loads.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tt::server {

ModelLoads::Load::Load(ModelLoads& loads, std::string model, std::string owner, IsWanted is_wanted,
                       Clock::duration time_limit)
    : loads_(loads),
      model_(std::move(model)),
      owner_(std::move(owner)),
      is_wanted_(std::move(is_wanted)),
      began_(Clock::now()),
      deadline_(began_ + time_limit),
      cancellation_(time_limit),
      watched_(loads.watch_, cancellation_, [this] {
        if (Clock::now() >= deadline_) return CancelReason::kTimeLimit;
        return is_wanted_ && !is_wanted_() ? CancelReason::kClient : CancelReason::kNone;
      }) {}

ModelLoads::Load::~Load() { loads_.end(*this); }

absl::Status ModelLoads::Load::status() const {
  switch (cancellation_.reason()) {
    case CancelReason::kNone: return absl::OkStatus();
    case CancelReason::kClient: return absl::CancelledError("[model] loading ended, because its caller does not wait");
    case CancelReason::kTimeLimit:
      return absl::DeadlineExceededError(absl::StrCat("[model] expected the model to be loaded and warmed up within ",
                                                      std::chrono::duration<double>(cancellation_.time_limit()).count(),
                                                      " s (--model-load-timeout)"));
    case CancelReason::kEnded: break;
  }
  return absl::CancelledError("[model] loading ended, because the model was unloaded or removed, or the engine ends");
}

ModelLoads::ModelLoads(CancelWatch& watch, std::chrono::milliseconds time_limit, std::function<void()> ended)
    : watch_(watch), time_limit_(time_limit), ended_(std::move(ended)) {}

bool ModelLoads::has_place(const std::string& model, const std::string& owner) const {
  if (loads_.contains(model)) return false;
  const auto slow = Clock::now() - kSlowLoad;
  size_t all = 0, recent = 0, of_owner = 0;
  for (const auto& [other, load] : loads_) {
    if (load->owner_.empty() != owner.empty()) continue;
    ++all;
    if (load->began_ > slow) ++recent;
    if (load->owner_ == owner) ++of_owner;
  }
  if (!owner.empty() && of_owner >= kMaxLoadsOfOwner) return false;
  const size_t reserve = !owner.empty() && of_owner == 0 ? kReserve : 0;
  return all < kMaxLoads + reserve && recent < kMaxRecentLoads + reserve;
}

std::unique_ptr<ModelLoads::Load> ModelLoads::add(const std::string& model, const std::string& owner,
                                                  IsWanted is_wanted) {
  std::unique_ptr<Load> load(new Load(*this, model, owner, std::move(is_wanted), time_limit_));
  loads_[model] = load.get();
  changed_.notify_all();
  return load;
}

absl::StatusOr<std::unique_ptr<ModelLoads::Load>> ModelLoads::begin(const std::string& model, const std::string& owner,
                                                                    IsWanted is_wanted) {
  const auto deadline = Clock::now() + time_limit_;
  MutexLock lock(mutex_);
  while (!stopped_ && !has_place(model, owner)) {
    if (Clock::now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("[model] other loads of '", model, "' or of its owner took ",
                                                      "longer than --model-load-timeout"));
    }
    if (is_wanted) {
      MutexUnlock unlocked(mutex_);
      if (!is_wanted()) return absl::CancelledError("[model] the caller does not wait any more");
    }
    if (!stopped_ && !has_place(model, owner)) changed_.wait_for(mutex_, CancelWatch::kInterval);
  }
  if (stopped_) return absl::UnavailableError("the server is shutting down");
  return add(model, owner, std::move(is_wanted));
}

std::unique_ptr<ModelLoads::Load> ModelLoads::try_begin(const std::string& model, const std::string& owner) {
  MutexLock lock(mutex_);
  return stopped_ || !has_place(model, owner) ? nullptr : add(model, owner, {});
}

void ModelLoads::end(Load& load) {
  {
    MutexLock lock(mutex_);
    loads_.erase(load.model_);
    changed_.notify_all();
  }
  ended_();
}

void ModelLoads::cancel(const std::string& model) {
  MutexLock lock(mutex_);
  if (const auto found = loads_.find(model); found != loads_.end()) {
    found->second->cancellation_.request(CancelReason::kEnded);
  }
}

void ModelLoads::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  for (const auto& [model, load] : loads_) load->cancellation_.request(CancelReason::kEnded);
  changed_.notify_all();
}

bool ModelLoads::has(const std::string& model) const {
  MutexLock lock(mutex_);
  return loads_.contains(model);
}

}  // namespace tt::server
