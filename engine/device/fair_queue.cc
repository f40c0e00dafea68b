#include "engine/device/fair_queue.h"

#include <algorithm>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"

namespace tt {
namespace {

// How often a waiting thread looks whether its work was cancelled.
constexpr std::chrono::milliseconds kPoll{50};
// How often the holder of a turn compares itself with those that wait, which takes a lock of the engine.
constexpr std::chrono::microseconds kOfferInterval{100};
constexpr auto kShortNanoseconds = static_cast<uint64_t>(std::chrono::nanoseconds(FairQueue::kShort).count());

void raise(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t before = value.load(std::memory_order_relaxed);
  while (to > before && !value.compare_exchange_weak(before, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool FairQueue::try_take() {
  int64_t free = free_.load();
  while (free > 0) {
    if (free_.compare_exchange_weak(free, free - 1)) return true;
  }
  return false;
}

// Sequentially consistent with take(): either this thread sees the waiting one, or that one the free turn.
void FairQueue::give(TurnKind turn) {
  if (turn == TurnKind::kCore) {
    free_.fetch_add(1);
    if (waiting_.load() == 0) return;
  }
  MutexLock lock(mutex_);
  if (turn == TurnKind::kExtra) extra_is_taken_ = false;
  grant();
}

FairQueue::TurnKind FairQueue::take(const Share& share, const Flow& flow, uint64_t start) {
  if (waiting_.load(std::memory_order_relaxed) == 0 && try_take()) return TurnKind::kCore;
  Waiter waiter{&flow, &share, start, Clock::now()};
  MutexLock lock(mutex_);
  waiters_.push_back(&waiter);
  waiting_.fetch_add(1);
  publish();
  grant();
  while (waiter.turn == TurnKind::kNone && !cancel_requested()) {
    waiter.granted.wait_for(mutex_, kPoll);
    grant();
  }
  if (waiter.turn != TurnKind::kNone) return waiter.turn;
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
  waiting_.fetch_sub(1);
  publish();
  return TurnKind::kNone;
}

// A batch share that has waited for long counts as interactive.
Share::Priority FairQueue::rank(const Waiter& w, Clock::time_point now) {
  return now - w.since >= kStarvation ? Share::Priority::kInteractive : w.share->priority();
}

// Other turns of the share may have ended since it began to wait. It is not less than the virtual time when it began:
// Turn::begin() raises it.
uint64_t FairQueue::start(const Waiter& w) { return w.share->finish_.load(std::memory_order_relaxed); }

bool FairQueue::precedes(const Waiter& a, const Waiter& b, Clock::time_point now) {
  if (const Share::Priority first = rank(a, now), second = rank(b, now); first != second) return first < second;
  const uint64_t first = start(a), second = start(b);
  return first != second ? first < second : a.start < b.start;
}

FairQueue::Waiter* FairQueue::first(Clock::time_point now) const {
  const auto least = std::min_element(waiters_.begin(), waiters_.end(),
                                      [now](const Waiter* a, const Waiter* b) { return precedes(*a, *b, now); });
  return least == waiters_.end() ? nullptr : *least;
}

// Of the share that is next, and only past other flows of it: between shares, every turn is a core's.
FairQueue::Waiter* FairQueue::first_short(Clock::time_point now) const {
  const Waiter* const next = first(now);
  Waiter* found = nullptr;
  size_t of_share = 0;
  for (Waiter* const waiter : waiters_) {
    if (waiter->share != next->share) continue;
    ++of_share;
    if (waiter->flow->last_.load(std::memory_order_relaxed) >= kShortNanoseconds) continue;
    if (found == nullptr || precedes(*waiter, *found, now)) found = waiter;
  }
  return of_share > 1 ? found : nullptr;
}

// Gives free turns to waiting threads.
void FairQueue::grant() {
  const auto give_to = [this](Waiter* next, TurnKind turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), next));
    waiting_.fetch_sub(1);
    next->turn = turn;
    next->granted.notify_one();
  };
  while (!waiters_.empty() && try_take()) give_to(first(Clock::now()), TurnKind::kCore);
  if (!waiters_.empty() && !extra_is_taken_) {
    if (Waiter* const next = first_short(Clock::now())) {
      extra_is_taken_ = true;
      give_to(next, TurnKind::kExtra);
    }
  }
  publish();
}

void FairQueue::publish() {
  uint64_t least = UINT64_MAX;
  for (const Waiter* waiter : waiters_) least = std::min(least, start(*waiter));
  least_start_.store(least, std::memory_order_relaxed);
}

bool FairQueue::is_due(const Share& share, uint64_t finish, Clock::duration lasted) const {
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  const Waiter* const next = first(now);
  if (next == nullptr) return false;
  const Share::Priority own = share.priority(), its = rank(*next, now);
  if (its != own && next->share->priority() != own) return its < own;
  if (lasted < kQuantum) return false;
  if (next->share == &share) return next->start < finish;
  return start(*next) < share.finish_.load(std::memory_order_relaxed);
}

int FairQueue::position(const Flow& flow) const {
  MutexLock lock(mutex_);
  const auto own = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter* w) { return w->flow == &flow; });
  if (own == waiters_.end()) return -1;
  const auto now = Clock::now();
  return static_cast<int>(std::count_if(waiters_.begin(), waiters_.end(),
                                        [&](const Waiter* w) { return w != *own && precedes(*w, **own, now); }));
}

Turn::Turn(FairQueue* queue, Share* share, Flow* flow) : queue_(queue), share_(share), flow_(flow), outer_(current_) {
  if (queue_) begin();
}

Turn::~Turn() {
  if (queue_ == nullptr) return;
  end();
  if (had_turn_) flow_->last_.store(charged_ns_, std::memory_order_relaxed);
}

void Turn::begin() {
  if (queue_ == nullptr) return;
  raise(share_->finish_, queue_->virtual_now_.load(std::memory_order_relaxed));
  raise(flow_->finish_, share_->virtual_now_.load(std::memory_order_relaxed));
  start_ = share_->finish_.load(std::memory_order_relaxed);
  const uint64_t start_of_flow = flow_->finish_.load(std::memory_order_relaxed);
  if (queue_->waiting() == 0 && queue_->try_take()) {
    turn_ = FairQueue::TurnKind::kCore;
    began_ = FairQueue::Clock::now();
  } else {
    const Cancellation::Pause pause;  // does not count towards the frame's time limit
    const auto asked = FairQueue::Clock::now();
    turn_ = queue_->take(*share_, *flow_, start_of_flow);
    began_ = FairQueue::Clock::now();
    waited_ += began_ - asked;
  }
  had_turn_ |= turn_ != FairQueue::TurnKind::kNone;
  charged_ = began_;
  raise(queue_->virtual_now_, start_);
  raise(share_->virtual_now_, start_of_flow);
  current_ = this;
}

void Turn::end() {
  if (queue_ == nullptr) return;
  charge(FairQueue::Clock::now());
  current_ = outer_;
  const FairQueue::TurnKind turn = std::exchange(turn_, FairQueue::TurnKind::kNone);
  if (turn != FairQueue::TurnKind::kNone) queue_->give(turn);
}

uint64_t Turn::charge(FairQueue::Clock::time_point now) {
  const uint64_t time =
      static_cast<uint64_t>((now - charged_) / std::chrono::nanoseconds(1)) + std::exchange(extra_, 0);
  charged_ = now;
  share_->used_.fetch_add(time, std::memory_order_relaxed);
  charged_ns_ += time;
  if (charged_ns_ >= kShortNanoseconds) flow_->last_.store(charged_ns_, std::memory_order_relaxed);
  share_->finish_.fetch_add(time / std::max<uint32_t>(share_->weight(), 1), std::memory_order_relaxed);
  return flow_->finish_.fetch_add(time, std::memory_order_relaxed) + time;
}

// The pool would be idle while its holder waits.
void Turn::yield() {
  if (holds_pool()) return;
  const auto now = FairQueue::Clock::now();
  if (now < next_offer_) return;
  const auto lasted = now - began_;
  if (lasted < FairQueue::kQuantum && share_->priority() == Share::Priority::kInteractive) return;
  next_offer_ = now + kOfferInterval;
  if (!queue_->is_due(*share_, charge(now), lasted)) return;
  end();
  begin();
}

}  // namespace tt
