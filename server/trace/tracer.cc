#include "server/trace/tracer.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace tt::server {

void Span::attribute(const char* key, absl::string_view text) {
  attributes.emplace_back(key, printable(text, Tracer::kMaxText));
}

void Span::ended_now(std::chrono::nanoseconds duration) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  end = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  start = end - std::min(end, static_cast<uint64_t>(duration.count()));
}

bool SpanRate::allow() {
  const auto now = Clock::now();
  left_ = std::min(burst_, left_ + per_second_ * std::chrono::duration<double>(now - refilled_).count());
  refilled_ = now;
  if (left_ < 1) return false;
  --left_;
  return true;
}

// Hashes the number (SplitMix64), so that samples of a loop do not always hit the same step of it.
bool Tracer::samples(uint64_t number) const {
  uint64_t x = number + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-53 < options_.ratio;
}

bool Tracer::allow_call() {
  MutexLock lock(mutex_);
  if (calls_.allow()) return true;
  drop(Dropped::kRate, 1);
  return false;
}

const char* Tracer::reason_name(Dropped reason) {
  switch (reason) {
    case Dropped::kRate: return "rate";
    case Dropped::kQueue: return "queue";
    case Dropped::kFailed: return "failed";
    case Dropped::kRejected: return "rejected";
  }
  return "";
}

void Tracer::add(Span span) {
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (closed_ || spans_.size() >= kMaxQueued) return drop(Dropped::kQueue, 1);
    if (spans_.empty()) first_ = Clock::now();
    spans_.push_back(std::move(span));
    wake = spans_.size() == 1 || spans_.size() == kMaxBatch;
  }
  if (wake) changed_.notify_one();
}

std::vector<Span> Tracer::take() {
  MutexLock lock(mutex_);
  for (;;) {
    const bool is_due = !spans_.empty() && Clock::now() >= first_ + kBatchTime;
    if (closed_ || is_due || spans_.size() >= kMaxBatch) break;
    if (spans_.empty()) {
      changed_.wait(mutex_);
    } else {
      changed_.wait_until(mutex_, first_ + kBatchTime);
    }
  }
  const auto count = static_cast<ptrdiff_t>(std::min(spans_.size(), kMaxBatch));
  std::vector<Span> batch(std::make_move_iterator(spans_.begin()), std::make_move_iterator(spans_.begin() + count));
  spans_.erase(spans_.begin(), spans_.begin() + count);
  return batch;
}

void Tracer::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace tt::server
