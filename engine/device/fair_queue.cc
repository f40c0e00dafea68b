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
void FairQueue::give() {
  free_.fetch_add(1);
  if (waiting_.load() == 0) return;
  MutexLock lock(mutex_);
  grant();
}

bool FairQueue::take(const Share& share, const Flow& flow, uint64_t start) {
  if (waiting_.load(std::memory_order_relaxed) == 0 && try_take()) return true;
  Waiter waiter{&flow, &share, start, Clock::now()};
  MutexLock lock(mutex_);
  waiters_.push_back(&waiter);
  waiting_.fetch_add(1);
  grant();
  while (!waiter.has_turn && !cancel_requested()) {
    waiter.granted.wait_for(mutex_, kPoll);
    grant();
  }
  if (waiter.has_turn) return true;
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
  waiting_.fetch_sub(1);
  return false;
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

// Gives free turns to waiting threads.
void FairQueue::grant() {
  while (!waiters_.empty() && try_take()) {
    Waiter* const next = first(Clock::now());
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), next));
    waiting_.fetch_sub(1);
    next->has_turn = true;
    next->granted.notify_one();
  }
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
  if (queue_) end();
}

void Turn::begin() {
  if (queue_ == nullptr) return;
  raise(share_->finish_, queue_->virtual_now_.load(std::memory_order_relaxed));
  raise(flow_->finish_, share_->virtual_now_.load(std::memory_order_relaxed));
  const uint64_t start = share_->finish_.load(std::memory_order_relaxed);
  const uint64_t start_of_flow = flow_->finish_.load(std::memory_order_relaxed);
  if (queue_->waiting() == 0 && queue_->try_take()) {
    has_turn_ = true;
    began_ = FairQueue::Clock::now();
  } else {
    const Cancellation::Pause pause;  // does not count towards the frame's time limit
    const auto asked = FairQueue::Clock::now();
    has_turn_ = queue_->take(*share_, *flow_, start_of_flow);
    began_ = FairQueue::Clock::now();
    waited_ += began_ - asked;
  }
  charged_ = began_;
  current_ = this;
  if (!has_turn_) return;  // cancelled; others may precede it
  raise(queue_->virtual_now_, start);
  raise(share_->virtual_now_, start_of_flow);
}

void Turn::end() {
  if (queue_ == nullptr) return;
  charge(FairQueue::Clock::now());
  current_ = outer_;
  if (std::exchange(has_turn_, false)) queue_->give();
}

uint64_t Turn::charge(FairQueue::Clock::time_point now) {
  const uint64_t time =
      static_cast<uint64_t>((now - charged_) / std::chrono::nanoseconds(1)) + std::exchange(extra_, 0);
  charged_ = now;
  share_->used_.fetch_add(time, std::memory_order_relaxed);
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
