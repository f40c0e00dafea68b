#include "engine/memory/history.h"

#include <algorithm>
#include <chrono>

#include "engine/memory/account.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr uint64_t kLiveBytes = 40;  // of an entry of live_

uint16_t number_of(Device device) {
  return static_cast<uint16_t>(is_accelerator(device.type) ? 1 + accelerator_number(device) : 0);
}

}  // namespace

MemoryHistory::~MemoryHistory() { account_.refund_host(charged_); }

uint64_t MemoryHistory::now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

// Charges for all events at the start, so that recording never fails later.
void MemoryHistory::charge() {
  const uint64_t bytes = max_events_ * sizeof(Event) + live_.size() * kLiveBytes;
  if (bytes > charged_) account_.charge_host(bytes - charged_);
  if (bytes < charged_) account_.refund_host(charged_ - bytes);
  charged_ = bytes;
}

void MemoryHistory::start(size_t max_events) {
  MutexLock lock(mutex_);
  const uint64_t bytes = max_events * sizeof(Event);
  check(ErrorKind::kOutOfMemory, bytes <= charged_ || account_.has_host_room(bytes - charged_),
        "[memory_history] expected room for ", max_events, " events of ", sizeof(Event), " bytes, the session has ",
        account_.host_room(), " bytes");
  if (max_events != max_events_) {
    events_ = {};
    count_ = 0;
  }
  max_events_ = max_events;
  active_ = true;
  charge();
}

bool MemoryHistory::is_active() const {
  MutexLock lock(mutex_);
  return active_;
}

void MemoryHistory::stop() {
  MutexLock lock(mutex_);
  active_ = false;
}

void MemoryHistory::clear() {
  MutexLock lock(mutex_);
  events_ = {};
  count_ = 0;
  if (!active_) {
    live_ = {};
    max_events_ = 0;
  }
  charge();
}

void MemoryHistory::add(const Event& event) {
  if (!active_) return;
  if (events_.size() < max_events_) {
    events_.push_back(event);
  } else {
    events_[count_ % max_events_] = event;
  }
  ++count_;
}

void MemoryHistory::allocated(const void* p, uint64_t bytes, Device device, uint32_t site) {
  MutexLock lock(mutex_);
  if (!active_) return;
  live_[p] = {bytes, site};
  charge();
  add({now(), p, bytes, site, kAllocation, number_of(device)});
}

void MemoryHistory::freed(const void* p, uint64_t bytes, Device device) {
  MutexLock lock(mutex_);
  uint32_t site = 0;
  if (auto at = live_.find(p); at != live_.end()) {
    site = at->second.site;
    live_.erase(at);
    charge();
  }
  add({now(), p, bytes, site, kFree, number_of(device)});
}

void MemoryHistory::out_of_memory(uint64_t bytes, Device device, uint32_t site) {
  MutexLock lock(mutex_);
  add({now(), nullptr, bytes, site, kOutOfMemory, number_of(device)});
}

std::vector<MemoryHistory::Event> MemoryHistory::events() const {
  MutexLock lock(mutex_);
  std::vector<Event> events = events_;
  if (count_ > events.size()) {
    std::rotate(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count_ % max_events_), events.end());
  }
  return events;
}

uint64_t MemoryHistory::dropped() const {
  MutexLock lock(mutex_);
  return count_ - events_.size();
}

std::optional<MemoryHistory::Live> MemoryHistory::find(const void* p) const {
  MutexLock lock(mutex_);
  auto at = live_.find(p);
  return at == live_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace tt
