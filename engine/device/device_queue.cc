#include "engine/device/device_queue.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

// Bursts are doubled while they take less than kShortBurst, and halved when they take more than FairQueue::kQuantum.
constexpr std::chrono::microseconds kShortBurst{250};
constexpr uint32_t kLongestBurst = 64;  // launches
// The next frame of a session that keeps the GPU busy follows at once: without this, sessions would take turns by
// frames, not by their shares. See "Anticipatory scheduling" (Iyer, Druschel, 2001).
constexpr std::chrono::microseconds kNextFrame{100};
// A session that has launched nothing for this time within a frame does something else.
constexpr std::chrono::milliseconds kNextLaunch = FairQueue::kQuantum;
// A session whose turn ended in this way was not idle if it continues within this time: it may have been late because
// the processors were busy.
constexpr std::chrono::milliseconds kInterruption{10};
// A turn whose work does not end is ended even if the work of an earlier one is late for this time.
constexpr std::chrono::seconds kLongestLateWork{1};
// Within this time, a thread that waits for a stream asks without sleeping: a sleep takes 50 us and more.
constexpr std::chrono::microseconds kSpin{100};
constexpr std::chrono::microseconds kSleep{20};

bool is_done(const Event* event) {
  try {
    return event == nullptr || event->done();
  } catch (const Error&) {  // a lost device executes nothing
    return true;
  }
}

// Waits until `done` returns true, for `longest` at most, or until the thread's work is cancelled.
template <typename Done>
void wait_until(const Done& done, FairQueue::Clock::duration longest = DeviceQueue::kLongestWait) {
  const auto began = FairQueue::Clock::now();
  while (!done() && !cancel_requested()) {
    const auto lasted = FairQueue::Clock::now() - began;
    if (lasted > longest) return;
    if (lasted < kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }
}

// While it exists, the thread waits for a GPU and has no turn of the processors.
class WithoutProcessor {
 public:
  WithoutProcessor() {
    if (Turn* const turn = Turn::current()) pause_.emplace(*turn);
  }

 private:
  std::optional<Turn::Pause> pause_;
};

}  // namespace

void DeviceQueue::take(DeviceTurn& turn) {
  if (join(turn, 0)) return;
  const WithoutProcessor pause;
  const Cancellation::Pause uncounted;  // the wait does not count towards the frame's time limit
  const auto asked = Clock::now();
  const auto ends = [this] { end_turn(); };
  const absl::FunctionRef<void()> end = ends;
  for (bool has_turn = false; !has_turn;) {
    const auto now = Clock::now();
    if (queue_.waiting() == 0) contended_since_.store(now, std::memory_order_relaxed);
    bool was_idle = true;
    {
      MutexLock lock(mutex_);
      was_idle = now - turn.interrupted_at_ > kInterruption;
    }
    const FairQueue::Start start = queue_.arrive(turn.share_, turn.flow_, was_idle);
    const uint64_t number = queue_.take(turn.share_, turn.flow_, start.flow, &end);
    if (number == 0) break;  // cancelled; others may precede it
    queue_.begin(turn.share_, start);
    has_turn = join(turn, number);
  }
  turn.waited_ += Clock::now() - asked;
}

bool DeviceQueue::join(DeviceTurn& turn, uint64_t number) {
  MutexLock lock(mutex_);
  if (turns_.empty() ? number <= ended_ : &turns_.front()->share_ != &turn.share_) return false;
  if (turns_.empty()) {
    number_ = number;
    charge(nullptr);
    began_ = Clock::now();
  }
  turns_.push_back(&turn);
  turn.seen_launches_ = 0;
  turn.interrupted_at_ = {};
  turn.is_paced_.store(false, std::memory_order_relaxed);
  turn.has_turn_.store(true, std::memory_order_relaxed);
  return true;
}

void DeviceQueue::clear() {
  for (DeviceTurn* const turn : turns_) turn->has_turn_.store(false, std::memory_order_relaxed);
  turns_.clear();
  ended_ = number_;
}

void DeviceQueue::leave(DeviceTurn& turn) {
  {
    MutexLock lock(mutex_);
    std::erase_if(late_, [&](const auto& late) { return late.first == &turn; });
    const auto own = std::find(turns_.begin(), turns_.end(), &turn);
    if (own == turns_.end()) return;
    charge(&turn);
    turn.has_turn_.store(false, std::memory_order_relaxed);
    turns_.erase(own);
    if (!turns_.empty()) return;
    clear();
  }
  queue_.give();
}

void DeviceQueue::end_turn() {
  {
    MutexLock lock(mutex_);
    if (turns_.empty()) return;  // the turn begins or ends
    DeviceTurn* const first = turns_.front();
    charge(first);
    const auto now = Clock::now();
    bool all_over = true;
    auto idle = Clock::duration::max();
    for (DeviceTurn* const each : turns_) {
      bool is_over = false;
      idle = std::min(idle, each->idle_time(now, &is_over));
      all_over = all_over && is_over;
    }
    if (!all_over) {
      // Behind late work, the turn's own work may take as long as that.
      const Clock::duration longest = late_.empty() ? Clock::duration(kLongestWait) : Clock::duration(kLongestLateWork);
      if (idle < longest && !queue_.is_due(first->share_, queue_.finish(first->flow_), now - began_)) return;
      for (DeviceTurn* const each : turns_) late_.emplace_back(each, each->record());
    }
    for (DeviceTurn* const each : turns_) {
      if (!each->is_resting()) each->interrupted_at_ = now;
    }
    clear();
  }
  drain();
  queue_.give();
}

void DeviceQueue::drain() {
  wait_until([this] {
    MutexLock lock(mutex_);
    return charge(nullptr);
  });
}

bool DeviceQueue::charge(DeviceTurn* turn) {
  const auto now = Clock::now();
  const auto since = std::max(charged_until_, contended_since_.load(std::memory_order_relaxed));
  DeviceTurn* const payer = late_.empty() ? turn : late_.front().first;
  if (payer != nullptr && now > since && queue_.waiting() != 0) {
    const std::chrono::nanoseconds time = now - since;
    queue_.charge(payer->share_, payer->flow_, static_cast<uint64_t>(time.count()));
  }
  charged_until_ = now;
  std::erase_if(late_, [](const auto& late) { return is_done(late.second.get()); });
  return late_.empty();
}

FairQueues::FairQueues(size_t cores, size_t count) : processors(cores) {
  for (size_t i = 1; i <= std::min(count, kMaxResources - 1); ++i) gpus.push_back(std::make_unique<DeviceQueue>(i));
}

DeviceQueue* FairQueues::of(Device device) const {
  const auto index = static_cast<size_t>(device.index);
  return device.type == DeviceType::kCUDA && index < gpus.size() ? gpus[index].get() : nullptr;
}

int FairQueues::position(const Flow& flow) const {
  int position = processors.position(flow);
  for (size_t i = 0; i < gpus.size() && position < 0; ++i) position = gpus[i]->position(flow);
  return position;
}

void DeviceTurn::leave() {
  if (has_turn_.load(std::memory_order_relaxed)) {
    const WithoutProcessor pause;
    const std::unique_ptr<Event> end = record();
    wait_until([&] { return is_done(end.get()); });
  }
  queue_.leave(*this);
}

void DeviceTurn::take_or_pace() {
  if (holds_pool()) return;  // the pool would be idle while its holder waits
  if (!has_turn_.load(std::memory_order_relaxed)) {
    queue_.take(*this);
    begin_bursts(nullptr);
  } else if (queue_.contended_since_.load(std::memory_order_relaxed) != contended_since_) {
    begin_bursts(record());
  } else if (++launched_ >= burst_) {
    end_burst();
  }
}

void DeviceTurn::begin_bursts(std::unique_ptr<Event> previous) {
  contended_since_ = queue_.contended_since_.load(std::memory_order_relaxed);
  burst_ = 1;
  launched_ = 0;
  is_long_ = false;
  previous_ = std::move(previous);
  burst_began_ = Clock::now();
}

void DeviceTurn::end_burst() {
  std::unique_ptr<Event> end = record();
  {
    const WithoutProcessor pause;
    waits_.store(true, std::memory_order_relaxed);
    // Others may end the turn meanwhile, so that the work may wait for theirs.
    const auto done = [&] {
      return is_done(is_long_ ? end.get() : previous_.get()) || !has_turn_.load(std::memory_order_relaxed);
    };
    wait_until(done, Clock::duration::max());
    launches_.store(launches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // it was not idle
    waits_.store(false, std::memory_order_relaxed);
  }
  if (!has_turn_.load(std::memory_order_relaxed)) {
    queue_.take(*this);
    return begin_bursts(std::move(end));
  }
  previous_ = std::move(end);
  const auto now = Clock::now();
  const auto took = now - std::exchange(burst_began_, now);
  launched_ = 0;
  is_long_ = burst_ == 1 && took > 2 * FairQueue::kQuantum;
  if (took > FairQueue::kQuantum) {
    burst_ = std::max(burst_ / 2, uint32_t{1});
  } else if (took < kShortBurst) {
    burst_ = std::min(burst_ * 2, kLongestBurst);
  }
  is_paced_.store(true, std::memory_order_relaxed);
}

DeviceTurn::Clock::duration DeviceTurn::idle_time(Clock::time_point now, bool* is_over) {
  const uint64_t launches = launches_.load(std::memory_order_relaxed);
  if (launches != seen_launches_) {
    seen_launches_ = launches;
    seen_since_ = now;
    seen_end_ = nullptr;
  }
  const auto idle = now - seen_since_;
  Clock::duration expected{0};
  if (!is_resting()) {
    expected = kNextLaunch;
  } else if (is_paced_.load(std::memory_order_relaxed)) {
    expected = kNextFrame;
  }
  if (idle >= expected && !waits_.load(std::memory_order_relaxed)) {
    if (seen_end_ == nullptr) seen_end_ = record();
    *is_over = is_done(seen_end_.get());
  }
  return idle;
}

std::unique_ptr<Event> DeviceTurn::record() {
  try {
    return stream_.record();
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace tt
