#include "server/transfer/transfer_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr std::chrono::milliseconds kBufferPollInterval{50};

const char* name_of(TransferMonitor::Direction direction) {
  return direction == TransferMonitor::Direction::kUpload ? "uploads" : "downloads";
}

}  // namespace

TransferMonitor::~TransferMonitor() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::unique_ptr<TransferMonitor::Call>> TransferMonitor::begin(uint64_t session, Direction direction,
                                                                              std::function<void()> cancel,
                                                                              std::shared_ptr<Quota> quota) {
  MutexLock lock(mutex_);
  Usage& usage = sessions_[session];
  const size_t own = usage.calls[0] + usage.calls[1];
  const size_t free = limits_.per_engine - std::min(limits_.per_engine, calls_.size());
  absl::Status refusal;
  if (usage.calls[index(direction)] >= limits_.per_session) {
    refusal = absl::AbortedError(absl::StrCat("the session already has ", limits_.per_session, " ", name_of(direction),
                                              " in progress, its maximum"));
  } else if (own >= free) {
    // A session may use at most as many calls as are free, so that some remain for the next session.
    refusal = absl::AbortedError(absl::StrCat("the engine has ", calls_.size(), " of at most ", limits_.per_engine,
                                              " transfers in progress, ", own, " of them for this session"));
  } else if (quota && !quota->begin_transfer()) {
    refusal = absl::AbortedError(absl::StrCat("the sessions of ", quota->principal(), " have ",
                                              quota->limits().transfers, " transfers in progress, their maximum"));
  }
  if (!refusal.ok()) {
    if (own == 0) sessions_.erase(session);
    return refusal;
  }
  auto call =
      std::unique_ptr<Call>(new Call(shared_from_this(), session, direction, std::move(cancel), std::move(quota)));
  ++usage.calls[index(direction)];
  calls_.insert(call.get());
  ++begun_;
  start_thread();
  if (asleep_) changed_.notify_all();
  return call;
}

TransferMonitor::Call::~Call() { monitor_->finish(*this); }

void TransferMonitor::finish(Call& call) {
  MutexLock lock(mutex_);
  call.monitor_->mutex_.assume_held();  // is this object's mutex_
  if (call.quota_) call.quota_->end_transfer();
  calls_.erase(&call);
  auto found = sessions_.find(call.session_);
  Usage& usage = found->second;
  --usage.calls[index(call.direction_)];
  if (call.has_buffers_) --usage.streaming[index(call.direction_)];
  if (usage.calls[0] + usage.calls[1] == 0) sessions_.erase(found);
  if (call.has_buffers_) buffers_free_.notify_all();
}

bool TransferMonitor::Call::acquire_buffers(absl::FunctionRef<bool()> should_continue) {
  MutexLock lock(monitor_->mutex_);
  // Looks the counter up at each call, because the map may move its values during a wait.
  auto streaming = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(monitor_->mutex_) -> size_t& {
    return monitor_->sessions_[session_].streaming[index(direction_)];
  };
  while (streaming() >= monitor_->limits_.streaming) {
    lock.unlock();
    if (!should_continue()) return false;
    lock.lock();
    if (streaming() < monitor_->limits_.streaming) break;
    monitor_->buffers_free_.wait_for(monitor_->mutex_, kBufferPollInterval);
  }
  ++streaming();
  has_buffers_ = true;
  return true;
}

void TransferMonitor::Call::release_buffers() {
  MutexLock lock(monitor_->mutex_);
  if (!std::exchange(has_buffers_, false)) return;
  --monitor_->sessions_[session_].streaming[index(direction_)];
  monitor_->buffers_free_.notify_all();
}

bool TransferMonitor::Call::shares_buffers() const {
  MutexLock lock(monitor_->mutex_);
  const auto found = monitor_->sessions_.find(session_);
  return found->second.streaming[0] + found->second.streaming[1] > (has_buffers_ ? 1u : 0u);
}

void TransferMonitor::Call::carry(uint64_t transfer) {
  MutexLock lock(monitor_->mutex_);
  transfer_ = transfer;
}

void TransferMonitor::end_session(uint64_t session) {
  MutexLock lock(mutex_);
  if (!sessions_.contains(session)) return;
  for (Call* call : calls_) {
    if (call->session_ == session) call->cancel_();
  }
  buffers_free_.notify_all();
}

void TransferMonitor::cancel_upload(uint64_t session, uint64_t transfer, const Call* except) {
  MutexLock lock(mutex_);
  for (Call* call : calls_) {
    call->monitor_->mutex_.assume_held();  // is this object's mutex_
    if (call != except && call->session_ == session && call->transfer_ == transfer) call->cancel_();
  }
}

void TransferMonitor::expire_at(Clock::time_point when, std::weak_ptr<Expirable> object) {
  MutexLock lock(mutex_);
  auto added = expiring_.emplace(when, std::move(object));
  start_thread();
  if (added == expiring_.begin()) changed_.notify_all();
}

void TransferMonitor::start_thread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

TransferMonitor::Clock::time_point TransferMonitor::cancel_idle(Clock::time_point now) {
  // After calls have ended the thread checks once more, so that many short calls do not wake the thread each time.
  if (calls_.empty() && begun_ == std::exchange(checked_, begun_)) return Clock::time_point::max();
  for (Call* call : calls_) {
    Clock::rep since = call->waits_since_;
    if (since == 0 || now - Clock::time_point(Clock::duration(since)) < limits_.idle) continue;
    // Restart the interval, unless the wait has just ended, so that a call is not cancelled at every check.
    if (call->waits_since_.compare_exchange_strong(since, now.time_since_epoch().count())) call->cancel_();
  }
  return now + std::clamp<Clock::duration>(limits_.idle / 8, std::chrono::milliseconds(5), std::chrono::seconds(1));
}

void TransferMonitor::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    std::vector<std::weak_ptr<Expirable>> due;
    while (!expiring_.empty() && expiring_.begin()->first <= now) {
      due.push_back(std::move(expiring_.begin()->second));
      expiring_.erase(expiring_.begin());
    }
    if (!due.empty()) {
      lock.unlock();
      for (const std::weak_ptr<Expirable>& object : due) {
        if (auto alive = object.lock()) alive->drop_expired();
      }
      lock.lock();
      continue;
    }
    Clock::time_point next = cancel_idle(now);
    if (!expiring_.empty()) next = std::min(next, expiring_.begin()->first);
    if (next == Clock::time_point::max()) {
      asleep_ = true;
      changed_.wait(mutex_);
      asleep_ = false;
    } else {
      changed_.wait_until(mutex_, next);
    }
  }
}

}  // namespace tt::server
