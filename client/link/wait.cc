// Waits of Link's callers: for answers, for room in a frame, for the link's end. Waiting callers write and read
// themselves.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/link/link.h"

namespace tt::client {

constexpr FrameSize kReadSize{24, frame_memory::kRead};          // of a request in a frame
constexpr FrameSize kNumberSize{12, 2 * frame_memory::kNumber};  // of the request of a number

void Link::drive(absl::FunctionRef<bool()> done) {
  InterruptTimer timer;
  while (!done()) {
    throw_if_over();
    if (timer.is_due() && check_interrupt()) throw Interrupted();
    // The sender thread resumes the session, because a resumption cannot be interrupted.
    if (!broken_ && !resuming_ && !writing_ && may_send()) {
      sender_.set_callers_send(true);
      write_one(timer.max_sleep());
    } else if (!broken_ && !resuming_ && !reading_) {
      read_one(timer.max_sleep());
    } else if (sleep_in_wait(timer)) {
      throw Interrupted();
    }
  }
}

bool Link::sleep_in_wait(const InterruptTimer& timer) {
  if (!broken_) {
    sleep(timer.max_sleep());
    return false;
  }
  sleep(std::min(timer.max_sleep(), kInterruptInterval));
  return warn_of_interruption();
}

bool Link::warn_of_interruption() {
  constexpr auto kPatience = std::chrono::seconds(2);
  if (!broken_ || !interrupted_since_ || has_warned_) return false;
  if (InFlightLimit::Clock::now() - *interrupted_since_ < kPatience) return false;
  has_warned_ = true;
  const std::string message =
      absl::StrCat("[connection] the connection to the engine at ", transport_->address(), " is interrupted (",
                   broken_->message(), "); trying to connect again for ", engine_.lease_seconds(), " s");
  MutexUnlock unlocked(mutex_);
  return warn(message);
}

void Link::sleep(std::chrono::milliseconds timeout) {
  ++sleeping_callers_;
  if (timeout == Transport::kForever) {
    callers_.wait(mutex_);
  } else {
    callers_.wait_for(mutex_, timeout);
  }
  --sleeping_callers_;
}

void Link::wait_for_room(const FrameSize& size) {
  while (window_.is_full(size)) {
    bool interrupted = false;
    {
      MutexUnlock unlocked(mutex_);
      ReleaseInterpreterLock release;  // its destructor acquires the language's lock: mutex_ must not be held
      InterruptTimer timer;
      MutexLock lock(mutex_);
      while (window_.is_full(size) && !over_ && !interrupted) {
        if (timer.is_due()) {
          interrupted = check_interrupt();
        } else {
          interrupted = sleep_in_wait(timer);
        }
      }
    }
    if (interrupted) throw Interrupted();
    throw_if_over();
  }
}

// ---- Interrupts

bool Link::check_interrupt() {
  bool yes = false;
  {
    MutexUnlock unlocked(mutex_);
    yes = interrupted();
  }
  if (yes) record_interrupt();
  return yes;
}

void Link::record_interrupt() {
  const bool again = window_.acknowledged() < interrupted_at_;  // frames from before the last interrupt are unfinished
  interrupted_at_ = window_.last_issued();
  if (again) cancel_surely();
}

void Link::check_interrupt(InterruptTimer* timer) {
  if (!timer->is_due()) return;
  MutexLock lock(mutex_);
  if (check_interrupt()) throw Interrupted();
}

// Whether the engine may accept the cancellation if it is asked again. An engine without cancellation executes the
// frames, as after one interrupt.
static bool may_succeed_later(const absl::Status& status) {
  return !status.ok() && !absl::IsUnimplemented(status) && !absl::IsNotFound(status);
}

void Link::cancel_surely() {
  bool repeats = true;
  absl::Cleanup start = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!repeats || over_) return;
    cancel_through_ = window_.sealed();
    if (std::exchange(cancelling_, true)) return;
    if (canceller_.joinable()) canceller_.join();  // it has ended
    canceller_ = std::thread([this] { run_canceller(); });
  };
  repeats = may_succeed_later(cancel_queued().status());  // throws Interrupted
}

void Link::run_canceller() {
  constexpr auto kPause = std::chrono::milliseconds(100);
  MutexLock lock(mutex_);
  while (!over_ && window_.acknowledged() < cancel_through_) {
    const uint64_t through = cancel_through_;
    absl::Status status;
    {
      MutexUnlock unlocked(mutex_);
      status = transport_->cancel(through).status();
    }
    if (!may_succeed_later(status) && through == cancel_through_) break;
    if (!status.ok() && !over_) callers_.wait_for(mutex_, kPause);
  }
  cancelling_ = false;
}

absl::StatusOr<uint64_t> Link::cancel_queued() {
  if (!window_.building().empty()) window_.seal();  // so that later instructions are not cancelled
  const uint64_t through = window_.sealed();
  MutexUnlock unlocked(mutex_);
  return transport_->cancel(through);
}

void Link::cancel() {
  CallLock lock(*this);
  absl::Status status = cancel_queued().status();
  if (status.ok()) return;
  fail(absl::IsUnimplemented(status) ? ErrorKind::kNotImplemented : ErrorKind::kConnection, "[cancel] the engine at ",
       transport_->address(), " did not cancel: ", status.message());
}

// ---- Waits

uint64_t Link::flush() {
  CallLock lock(*this);
  uint64_t last = window_.flush();
  drive([&]()
            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return window_.sent() >= last || window_.acknowledged() >= last; });
  return last;
}

void Link::synchronize() {
  CallLock lock(*this);
  uint64_t last = window_.flush();
  drive([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return window_.acknowledged() >= last; });
}

void Link::request(absl::Span<const uint64_t> handles, bool meta_only, PendingRead* pending) {
  const FrameSize size{kReadSize.bytes * handles.size(), kReadSize.memory * handles.size()};
  if (window_.building().reads() + static_cast<int>(handles.size()) > 2 * SendWindow::kMaxReads) window_.seal();
  window_.begin_frame_for(size);
  window_.building().count(size);
  *pending = {window_.sealed() + 1, next_request_, std::vector<v1::ReadResult>(handles.size()), handles.size()};
  for (uint64_t handle : handles) {
    v1::Read* read = window_.building().message().add_reads();
    read->set_request(next_request_++);
    read->set_handle(handle);
    read->set_meta_only(meta_only);
  }
  reads_.add(pending);
}

std::vector<v1::ReadResult> Link::read(absl::Span<const uint64_t> handles, bool meta_only) {
  CallLock lock(*this);
  std::vector<v1::ReadResult> results;
  for (size_t at = 0; at < handles.size(); at += SendWindow::kMaxReads) {  // usually once
    PendingRead pending;
    request(handles.subspan(at, SendWindow::kMaxReads), meta_only, &pending);
    window_.flush();
    absl::Cleanup leave = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { drop(&pending); };
    drive([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return pending.missing == 0; });
    if (results.empty()) {
      results = std::move(pending.results);
    } else {
      std::move(pending.results.begin(), pending.results.end(), std::back_inserter(results));
    }
  }
  return results;
}

void Link::begin_read(absl::Span<const uint64_t> handles, bool meta_only, PendingRead* pending) {
  Appending appending(*this, FrameSize(), [] {});  // request() counts the size
  mutex_.assume_held();
  request(handles, meta_only, pending);
}

Ref<PendingScalar> Link::read_scalar(uint64_t handle, absl::FunctionRef<void()> before_waiting) {
  if (engine_.limits().max_scalar_reads() == 0) return nullptr;
  Appending appending(*this, kNumberSize, before_waiting);
  mutex_.assume_held();
  if (numbers_.is_full()) return nullptr;
  return numbers_.add(handle, window_.sealed() + 1, &window_.building().message());
}

bool Link::poll_for(uint64_t sequence, absl::FunctionRef<bool()> arrived) {
  constexpr int kMaxReplies = 64;
  // A loop that logs a value per step asks after every step. Handling each reply at once would cost as much as a small
  // step, and make the sender thread send many small frames. So replies are handled at this interval.
  constexpr auto kInterval = std::chrono::milliseconds(1);
  if (arrived()) return true;
  throw_if_over();
  const auto now = InFlightLimit::Clock::now();
  const bool only_asks = std::exchange(asked_after_, counters_.instructions) == counters_.instructions;
  if (!only_asks && (sequence > window_.sent() || now < polled_ + kInterval)) return false;
  polled_ = now;
  for (int i = 0; i < kMaxReplies && !arrived() && !broken_ && !resuming_ && !reading_; ++i) {
    if (!read_one(std::chrono::milliseconds(0))) break;
    throw_if_over();
  }
  return arrived();
}

bool Link::wait_for(uint64_t sequence, absl::FunctionRef<bool()> arrived) {
  if (arrived()) return false;
  throw_if_over();
  window_.flush_through(sequence);
  drive(arrived);
  return true;
}

bool Link::has_arrived(const PendingRead& pending) {
  mutex_of_process();  // throws in a forked child
  MutexLock lock(mutex_);
  return poll_for(pending.sequence, [&] { return pending.missing == 0; });
}

bool Link::finish_read(const PendingRead& pending) {
  mutex_of_process();  // throws in a forked child
  MutexLock lock(mutex_);
  return wait_for(pending.sequence, [&] { return pending.missing == 0; });
}

bool Link::has_arrived(const PendingScalar& number) {
  if (number.has_arrived()) return true;
  mutex_of_process();  // throws in a forked child
  MutexLock lock(mutex_);
  return poll_for(number.sequence, [&] { return number.has_arrived(); });
}

bool Link::finish_read(const PendingScalar& number) {
  if (number.has_arrived()) return false;
  mutex_of_process();  // throws in a forked child
  MutexLock lock(mutex_);
  return wait_for(number.sequence, [&] { return number.has_arrived(); });
}

void Link::abandon_read(PendingRead* pending) noexcept {
  if (is_forked_copy()) return;
  MutexLock lock(mutex_);
  drop(pending);
}

void Link::drop(PendingRead* pending) {
  // The frame under construction may release the handles before it answers its reads.
  if (pending->missing > 0 && pending->sequence > window_.sealed()) {
    window_.building().drop_reads(pending->first_request, pending->results.size());
  }
  reads_.remove(pending);
}

// ---- The end

bool Link::wait_for_end(uint64_t sequence, std::chrono::milliseconds timeout, InterruptTimer* timer) {
  using Clock = std::chrono::steady_clock;
  for (auto now = Clock::now(), until = now + timeout; now < until; now = Clock::now()) {
    if (over_ || window_.acknowledged() >= sequence) break;
    if (timer->is_due() && check_interrupt()) return false;
    sleep(std::min(timer->max_sleep(), std::chrono::ceil<std::chrono::milliseconds>(until - now)));
  }
  return true;
}

bool Link::finish(std::chrono::milliseconds timeout, InterruptTimer timer) noexcept {
  constexpr auto kCancelled = std::chrono::milliseconds(500);
  if (is_forked_copy()) return true;
  bool interrupted = false;
  {
    MutexLock lock(mutex_);
    if (!over_ && !closing_) {
      closing_ = true;
      window_.building().message().set_close(true);
      window_.building().count({1, 0});
      uint64_t last = window_.flush();
      if (sender_.wake()) wake_sender_.notify_one();
      interrupted = !wait_for_end(last, timeout, &timer);
      if (!over_ && window_.acknowledged() < last) {
        // The engine still computes, or waits for an upload. Nobody can read the results any more, and without the
        // closing frame it would keep the session until its lease ends.
        timer = InterruptTimer::never();
        try {
          (void)cancel_queued();
        } catch (const Interrupted&) {
        }
        wait_for_end(last, kCancelled, &timer);
      }
    }
    end(Error(ErrorKind::kConnection, "[connection] the session is closed"));
    stopping_ = true;
    if (sender_.wake()) wake_sender_.notify_one();
  }
  resumption_->stop();
  transport_->shutdown();
  return !interrupted;
}

void Link::start_frame_log(size_t max_frames) {
  MutexLock lock(mutex_);
  frame_log_.start(max_frames);
}

std::vector<SentFrame> Link::stop_frame_log() {
  MutexLock lock(mutex_);
  return frame_log_.stop();
}

Counters Link::counters() const {
  MutexLock lock(mutex_);
  Counters counters = counters_;
  counters.round_trip = std::chrono::duration<double>(in_flight_limit_.round_trip()).count();
  counters.frames_in_flight = window_.sent() - window_.acknowledged();
  counters.max_frames_in_flight = in_flight_limit_.frames();
  counters.upload_bytes_in_flight = uploads_ ? uploads_->bytes() : 0;
  counters.transfers = transport_->transfer_counters();
  return counters;
}

}  // namespace tt::client
