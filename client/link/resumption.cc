#include "client/link/resumption.h"

#include <thread>

namespace tt::client {

Resumption::Resumption(Transport& transport, v1::HelloRequest hello, const v1::HelloReply& reply)
    : transport_(transport), hello_(std::move(hello)), lease_(reply.lease_seconds()) {
  hello_.set_resume_key(reply.session_key());
}

absl::Status Resumption::run(const absl::Status& why, Clock::duration* round_trip) {
  constexpr auto kTimeout = std::chrono::milliseconds(700);
  constexpr auto kPause = std::chrono::milliseconds(20), kSilentPause = std::chrono::milliseconds(100);
  constexpr int kMaxShortStreams = 20;
  const Clock::time_point begin = Clock::now();
  const bool short_stream = !replied_.exchange(false, std::memory_order_relaxed) && begin - opened_ < kTimeout;
  short_streams_ = short_stream ? short_streams_ + 1 : 0;
  if (short_streams_ > kMaxShortStreams) return why;
  Clock::time_point refused_since = begin;
  absl::Status status = why;
  for (bool first = true; first || Clock::now() - refused_since < kTimeout; first = false) {
    if (!first || short_stream) {
      std::this_thread::sleep_for(absl::IsDeadlineExceeded(status) ? kSilentPause : kPause);
    }
    v1::HelloReply reply;
    const Clock::time_point start = Clock::now();
    status = transport_.hello(hello_, &reply);
    *round_trip = Clock::now() - start;
    if (status.ok()) {
      if (reply.session_key() != hello_.resume_key()) return absl::NotFoundError("it has lost the session");
      opened_ = Clock::now();
      return transport_.open(hello_.resume_key());
    }
    if (absl::IsDeadlineExceeded(status) && start - begin < lease_) {
      refused_since = Clock::now();
    } else if (!absl::IsUnavailable(status)) {
      return status;
    }
  }
  return status;
}

}  // namespace tt::client
