#include "engine/device/fair_queue.h"

#include <algorithm>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"

namespace tt {
namespace {

// How often a waiting thread looks whether its work was cancelled.
constexpr std::chrono::milliseconds kPoll{50};
// How often the first waiting thread looks whether a turn can be reclaimed. Its holder need not signal that it could,
// so that the end of its work costs nothing.
constexpr std::chrono::microseconds kReclaimPoll{100};
// How often the holder of a turn compares itself with those that wait, which takes a lock of the engine.
constexpr std::chrono::microseconds kOfferInterval{100};

void raise(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t before = value.load(std::memory_order_relaxed);
  while (to > before && !value.compare_exchange_weak(before, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

FairQueue::Start FairQueue::arrive(Share& share, Flow& flow, bool was_idle) {
  Share::Times& times = share.times_[resource_];
  if (was_idle) {
    raise(times.finish, virtual_now_.load(std::memory_order_relaxed));
    raise(flow.finish_[resource_], times.virtual_now.load(std::memory_order_relaxed));
  }
  return {times.finish.load(std::memory_order_relaxed), flow.finish_[resource_].load(std::memory_order_relaxed)};
}

void FairQueue::begin(Share& share, const Start& start) {
  raise(virtual_now_, start.share);
  raise(share.times_[resource_].virtual_now, start.flow);
}

void FairQueue::charge(Share& share, Flow& flow, uint64_t nanoseconds) {
  Share::Times& times = share.times_[resource_];
  times.used.fetch_add(nanoseconds, std::memory_order_relaxed);
  times.finish.fetch_add(nanoseconds / std::max<uint32_t>(share.weight(), 1), std::memory_order_relaxed);
  flow.finish_[resource_].fetch_add(nanoseconds, std::memory_order_relaxed);
}

bool FairQueue::try_take(bool in_background) {
  if (in_background && background_.fetch_add(1) >= most_in_background_) {
    background_.fetch_sub(1);
    return false;
  }
  int64_t free = free_.load();
  while (free > 0) {
    if (free_.compare_exchange_weak(free, free - 1)) return true;
  }
  if (in_background) background_.fetch_sub(1);
  return false;
}

// Sequentially consistent with take(): either this thread sees the waiting one, or that one the free turn.
void FairQueue::give(bool in_background) {
  if (in_background) background_.fetch_sub(1);
  free_.fetch_add(1);
  if (waiting_.load() == 0) return;
  MutexLock lock(mutex_);
  grant();
}

uint64_t FairQueue::take(const Share& share, const Flow& flow, uint64_t start, const absl::FunctionRef<void()>* reclaim,
                         bool in_background) {
  if (waiting_.load(std::memory_order_relaxed) == 0 && try_take(in_background)) return number_.fetch_add(1) + 1;
  Waiter waiter{&flow, &share, start, Clock::now(), in_background};
  MutexLock lock(mutex_);
  waiters_.push_back(&waiter);
  waiting_.fetch_add(1);
  grant();
  while (waiter.turn == 0 && !cancel_requested()) {
    const bool reclaims = reclaim != nullptr && first(Clock::now()) == &waiter;
    if (reclaims) {
      MutexUnlock unlocked(mutex_);
      (*reclaim)();
    }
    if (waiter.turn != 0) break;
    if (reclaim != nullptr && !reclaims) first(Clock::now())->granted.notify_one();  // that thread reclaims
    waiter.granted.wait_for(mutex_, reclaims ? std::chrono::microseconds(kReclaimPoll) : kPoll);
    grant();
  }
  if (waiter.turn == 0) {
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
    waiting_.fetch_sub(1);
  }
  if (reclaim != nullptr && !waiters_.empty()) first(Clock::now())->granted.notify_one();  // reclaims from now on
  return waiter.turn;
}

// A batch share that has waited for long counts as interactive.
Share::Priority FairQueue::rank(const Waiter& w, Clock::time_point now) {
  return now - w.since >= kStarvation ? Share::Priority::kInteractive : w.share->priority();
}

// Other turns of the share may have ended since it began to wait. It is not less than the virtual time when it began:
// arrive() has raised it.
uint64_t FairQueue::start(const Waiter& w) const {
  return w.share->times_[resource_].finish.load(std::memory_order_relaxed);
}

bool FairQueue::precedes(const Waiter& a, const Waiter& b, Clock::time_point now) const {
  if (const Share::Priority first = rank(a, now), second = rank(b, now); first != second) return first < second;
  const uint64_t first = start(a), second = start(b);
  return first != second ? first < second : a.start < b.start;
}

FairQueue::Waiter* FairQueue::first(Clock::time_point now, bool in_background) const {
  const bool takes_background = in_background || background_.load() < most_in_background_;
  Waiter* least = nullptr;
  for (Waiter* each : waiters_) {
    if (each->in_background && !takes_background) continue;
    if (least == nullptr || precedes(*each, *least, now)) least = each;
  }
  return least;
}

// Gives free turns to waiting threads.
void FairQueue::grant() {
  while (free_.load() > 0) {
    const Waiter* const next = first(Clock::now());
    if (next == nullptr || !try_take(next->in_background)) return;
    const Share* const share = next->share;
    const uint64_t number = number_.fetch_add(1) + 1;
    std::erase_if(waiters_, [&](Waiter* w) {
      if (w != next && (resource_ == 0 || w->share != share)) return false;
      waiting_.fetch_sub(1);
      w->turn = number;
      w->granted.notify_one();
      return true;
    });
  }
}

bool FairQueue::is_due(const Share& share, uint64_t finish, Clock::duration lasted, bool in_background) const {
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  const Waiter* const next = first(now, in_background);
  if (next == nullptr) return false;
  const Share::Priority own = share.priority(), its = rank(*next, now);
  if (its != own && next->share->priority() != own) return its < own;
  if (lasted < kQuantum) return false;
  if (next->share == &share) return next->start < finish;
  return start(*next) < share.times_[resource_].finish.load(std::memory_order_relaxed);
}

int FairQueue::position(const Flow& flow) const {
  MutexLock lock(mutex_);
  const auto own = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter* w) { return w->flow == &flow; });
  if (own == waiters_.end()) return -1;
  const auto now = Clock::now();
  return static_cast<int>(std::count_if(waiters_.begin(), waiters_.end(),
                                        [&](const Waiter* w) { return w != *own && precedes(*w, **own, now); }));
}

Turn::Turn(FairQueue* queue, Share* share, Flow* flow, bool in_background)
    : queue_(queue), share_(share), flow_(flow), in_background_(in_background), outer_(current_) {
  if (queue_) begin();
}

Turn::~Turn() {
  if (queue_) end();
}

void Turn::begin() {
  if (queue_ == nullptr) return;
  const FairQueue::Start start = queue_->arrive(*share_, *flow_);
  if (queue_->waiting() == 0 && queue_->try_take(in_background_)) {
    has_turn_ = true;
    began_ = FairQueue::Clock::now();
  } else {
    const Cancellation::Pause pause;  // does not count towards the frame's time limit
    const auto asked = FairQueue::Clock::now();
    has_turn_ = queue_->take(*share_, *flow_, start.flow, nullptr, in_background_) != 0;
    began_ = FairQueue::Clock::now();
    waited_ += began_ - asked;
  }
  charged_ = began_;
  current_ = this;
  if (!has_turn_) return;  // cancelled; others may precede it
  queue_->begin(*share_, start);
}

void Turn::end() {
  if (queue_ == nullptr) return;
  charge(FairQueue::Clock::now());
  current_ = outer_;
  if (std::exchange(has_turn_, false)) queue_->give(in_background_);
}

void Turn::charge(FairQueue::Clock::time_point now) {
  const uint64_t time =
      static_cast<uint64_t>((now - charged_) / std::chrono::nanoseconds(1)) + std::exchange(extra_, 0);
  charged_ = now;
  queue_->charge(*share_, *flow_, time);
}

// The pool would be idle while its holder waits.
void Turn::yield() {
  if (holds_pool()) return;
  const auto now = FairQueue::Clock::now();
  if (now < next_offer_) return;
  const auto lasted = now - began_;
  if (lasted < FairQueue::kQuantum && share_->priority() == Share::Priority::kInteractive) return;
  next_offer_ = now + kOfferInterval;
  charge(now);
  if (!queue_->is_due(*share_, queue_->finish(*flow_), lasted, in_background_)) return;
  end();
  begin();
}

}  // namespace tt
