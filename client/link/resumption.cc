#include "client/link/resumption.h"

#include <thread>

namespace tt::client {

Resumption::Resumption(Transport& transport, v1::HelloRequest hello, const v1::HelloReply& reply)
    : transport_(transport), hello_(std::move(hello)), lease_(reply.lease_seconds()) {
  hello_.set_resume_key(reply.session_key());
}

absl::Status Resumption::run(const absl::Status& why, std::chrono::steady_clock::duration* round_trip) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kTimeout = std::chrono::milliseconds(700);
  constexpr auto kPause = std::chrono::milliseconds(20), kSilentPause = std::chrono::milliseconds(100);
  constexpr int kMaxStreams = 20;
  const bool new_series = replied_.exchange(false, std::memory_order_relaxed);
  if (new_series) {
    begun_ = refused_since_ = Clock::now();
    streams_ = 0;
  }
  absl::Status status = why;
  for (bool first = new_series; first || Clock::now() - refused_since_ < kTimeout; first = false) {
    if (!first) std::this_thread::sleep_for(absl::IsDeadlineExceeded(status) ? kSilentPause : kPause);
    v1::HelloReply reply;
    const Clock::time_point start = Clock::now();
    status = transport_.hello(hello_, &reply);
    *round_trip = Clock::now() - start;
    if (status.ok()) {
      if (reply.session_key() != hello_.resume_key()) return absl::NotFoundError("it has lost the session");
      if (++streams_ <= kMaxStreams) refused_since_ = Clock::now();
      return transport_.open(hello_.resume_key());
    }
    if (absl::IsDeadlineExceeded(status) && start - begun_ < lease_) {
      refused_since_ = Clock::now();
    } else if (!absl::IsUnavailable(status)) {
      return status;
    }
  }
  return status;
}

}  // namespace tt::client
