#include "engine/device/cancellation.h"

#include <utility>

#include "engine/device/fair_queue.h"

namespace tt {
namespace {

std::string describe(const Cancellation& request) {
  switch (request.reason()) {
    case CancelReason::kClient: return "cancelled by the client";
    case CancelReason::kTimeLimit:
      return absl::StrCat("exceeded the engine's time limit of ",
                          std::chrono::duration<double>(request.time_limit()).count(), " s for one frame");
    default: return "cancelled: the session was ended";
  }
}

Cancellation::Clock::rep now() { return Cancellation::Clock::now().time_since_epoch().count(); }

}  // namespace

void Cancellation::request(CancelReason reason) {
  if (reason == CancelReason::kEnded) return reason_.store(reason, std::memory_order_relaxed);
  CancelReason none = CancelReason::kNone;
  reason_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
}

void Cancellation::reset() {
  CancelReason reason = this->reason();
  while (reason != CancelReason::kEnded && reason != CancelReason::kNone &&
         !reason_.compare_exchange_weak(reason, CancelReason::kNone, std::memory_order_relaxed)) {
  }
  began_.store(now(), std::memory_order_relaxed);
}

Cancellation::Clock::duration Cancellation::running() const {
  const Clock::rep paused = paused_.load(std::memory_order_relaxed);
  return Clock::duration((paused != 0 ? paused : now()) - began_.load(std::memory_order_relaxed));
}

Cancellation::Pause::Pause() : cancellation_(current()) {
  if (cancellation_ && cancellation_->paused_.load(std::memory_order_relaxed) != 0) cancellation_ = nullptr;
  if (cancellation_) cancellation_->paused_.store(now(), std::memory_order_relaxed);
}

Cancellation::Pause::~Pause() {
  if (!cancellation_) return;
  // Advances began_ before paused_ is cleared: a concurrent reader may then compute a duration that is too short, but
  // never one that is too long.
  const Clock::rep paused = cancellation_->paused_.load(std::memory_order_relaxed);
  cancellation_->began_.fetch_add(now() - paused, std::memory_order_relaxed);
  cancellation_->paused_.store(0, std::memory_order_release);
}

CancellationScope::CancellationScope(Cancellation* cancellation)
    : saved_(std::exchange(Cancellation::current_, cancellation)) {}

CancellationScope::~CancellationScope() { Cancellation::current_ = saved_; }

Cancelled::Cancelled(const Cancellation& request) : Error(ErrorKind::kRuntime, describe(request)) {}

void check_cancelled() {
  const Cancellation* cancellation = Cancellation::current();
  if (cancellation != nullptr && cancellation->requested()) [[unlikely]]
    throw Cancelled(*cancellation);
  if (Turn* const turn = Turn::current()) turn->offer();
}

}  // namespace tt
