#include "client/link/resumption.h"

#include <algorithm>

namespace tt::client {
namespace {

// Whether the engine has refused to resume the session.
bool is_refusal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

}  // namespace

Resumption::Resumption(Transport& transport, v1::HelloRequest hello, const v1::HelloReply& reply)
    : transport_(transport), hello_(std::move(hello)), lease_(reply.lease_seconds()) {
  hello_.set_resume_key(reply.session_key());
}

void Resumption::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool Resumption::pause(std::chrono::milliseconds duration) {
  MutexLock lock(mutex_);
  return !changed_.wait_for(mutex_, duration, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_; });
}

bool Resumption::is_futile(Clock::time_point now) const {
  constexpr int kMaxStreams = 1000, kMaxShortStreams = 5;
  constexpr auto kShort = std::chrono::milliseconds(5500);  // on average
  if (streams_ <= kMaxShortStreams) return false;
  return streams_ > kMaxStreams || (now - first_broke_ >= lease_ && now - first_broke_ < streams_ * kShort);
}

absl::Status Resumption::run(const absl::Status& why, Clock::duration* round_trip, uint64_t* executed) {
  constexpr auto kPause = std::chrono::milliseconds(20), kMaxPause = std::chrono::milliseconds(500);
  constexpr auto kShutdownTime = std::chrono::milliseconds(700);
  constexpr int kAttemptsAfterEnd = 2;
  const std::chrono::duration<double> patience(patience_.load());
  const bool persists = patience.count() > 0;
  const bool ended_by_engine = !persists && (absl::IsCancelled(why) || absl::IsNotFound(why));
  const Clock::time_point begin = Clock::now();
  if (replied_.exchange(false, std::memory_order_relaxed)) {
    streams_ = 0;
    first_broke_ = begin;
  } else {
    ++streams_;
  }
  if (is_futile(begin)) return why;
  int attempts_after_end = 0;
  for (int attempt = streams_;; ++attempt) {
    if (!pause(std::min<std::chrono::milliseconds>(kPause * attempt, kMaxPause))) {
      return absl::CancelledError("the session is closed");
    }
    v1::HelloReply reply;
    // If the process was replaced by another one, a call that starts now reaches the new process.
    const bool has_ended = !persists && transport_.engine_has_ended();
    const Clock::time_point start = Clock::now();
    absl::Status status = transport_.hello(hello_, &reply);
    *round_trip = Clock::now() - start;
    if (status.ok()) {
      if (reply.session_key() != hello_.resume_key()) return absl::NotFoundError("it has lost the session");
      *executed = reply.executed();
      return transport_.open(hello_.resume_key());
    }
    if (is_refusal(status)) return status;
    attempts_after_end += has_ended && absl::IsUnavailable(status);
    if (attempts_after_end == kAttemptsAfterEnd) return absl::UnavailableError("its process has ended");
    const auto tried = Clock::now() - begin;
    if (tried >= std::max(lease_, patience) || (ended_by_engine && tried >= kShutdownTime)) return status;
  }
}

}  // namespace tt::client
