#include "server/serving/cancel_watch.h"

#include <utility>

namespace tt::server {

CancelWatch::Work::Work(CancelWatch& watch, Cancellation& cancellation, Reason reason)
    : watch_(watch), cancellation_(cancellation), reason_(std::move(reason)) {
  MutexLock lock(watch_.mutex_);
  position_ = watch_.works_.size();
  watch_.works_.push_back(this);
  ++watch_.begun_;
  if (std::exchange(watch_.is_asleep_, false)) watch_.changed_.notify_one();
}

CancelWatch::Work::~Work() {
  MutexLock lock(watch_.mutex_);
  Work* const last = watch_.works_.back();
  last->watch_.mutex_.assume_held();  // is this watch_
  last->position_ = position_;
  watch_.works_[position_] = last;
  watch_.works_.pop_back();
}

CancelWatch::CancelWatch() : thread_([this] { run(); }) {}

CancelWatch::~CancelWatch() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void CancelWatch::run() {
  constexpr int kQuietIntervals = 20;
  MutexLock lock(mutex_);
  uint64_t begun = 0;
  for (int quiet = 0; !ending_;) {
    for (Work* work : works_) {
      if (const CancelReason reason = work->reason_(); reason != CancelReason::kNone) {
        work->cancellation_.request(reason);
      }
    }
    quiet = works_.empty() && begun == begun_ ? quiet + 1 : 0;
    begun = begun_;
    is_asleep_ = quiet > kQuietIntervals;
    if (is_asleep_) {
      changed_.wait(mutex_);
    } else {
      changed_.wait_for(mutex_, kInterval);
    }
  }
}

}  // namespace tt::server
