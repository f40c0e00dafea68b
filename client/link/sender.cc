// Link's sender thread.
#include "client/link/link.h"
#include "proto/keepalive.h"

namespace tt::client {

bool Link::has_work_for_sender() const {
  if (stopping_) return true;
  if (over_ || resuming_) return false;
  if (broken_) return !writing_ && !reading_;
  if (!writing_ && may_send()) return true;
  // A thread must read if the window is full, or if a download waits for frames in flight.
  return !reading_ && !writing_ &&
         (window_.has_unsent() || ((closing_ || downloads_ > 0) && !window_.all_acknowledged()));
}

// Whether new work can wait until the sender's short sleep ends. If callers read after every few calls, a woken sender
// would only compete with them.
bool Link::can_wait() const {
  constexpr int kFewInstructions = 32;
  return sender_.callers_send() && sender_.timed_wait() && window_.building().instructions() < kFewInstructions;
}

bool Link::sender_step() {
  if (!has_work_for_sender() || stopping_) return false;
  if (broken_) {
    resume();
  } else if (!writing_ && may_send()) {
    write_one(Transport::kForever);
  } else {
    // A frame that waits for more instructions is sent after a moment, whether or not a reply arrives.
    read_one(window_.may_send() ? std::chrono::milliseconds(1) : Transport::kForever);
  }
  return true;
}

void Link::sender_sleep() {
  constexpr auto kNap = std::chrono::microseconds(200);
  constexpr auto kIdlePoll = std::chrono::milliseconds(kIdlePollMilliseconds);
  for (uint64_t frames = counters_.frames;; frames = counters_.frames) {
    sender_.begin_timed_wait();
    if (sender_.sleep(wake_sender_, mutex_, kNap)) break;
    if (has_work_for_sender()) {  // the caller that appended the work did not send it
      sender_.set_callers_send(false);
      break;
    }
    if (counters_.frames != frames) continue;                              // callers send frames themselves
    if (!broken_ && !over_ && !resuming_ && window_.may_send()) continue;  // a frame is being delayed
    if (window_.has_releases() && !over_) {                                // no instruction followed to carry them
      window_.append_releases();
      break;
    }
    sender_.begin_sleep();
    while (!sender_.sleep(wake_sender_, mutex_, kIdlePoll) && !has_work_for_sender()) {
      if (!over_ && !broken_ && !resuming_ && !reading_) read_one(std::chrono::milliseconds(0));
    }
    break;
  }
  sender_.end_sleep();
}

void Link::run_sender() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (!sender_step()) sender_sleep();
  }
}

}  // namespace tt::client
