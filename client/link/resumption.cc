#include "client/link/resumption.h"

#include <thread>

namespace tt::client {

Resumption::Resumption(Transport& transport, v1::HelloRequest hello, std::string session_key)
    : transport_(transport), hello_(std::move(hello)) {
  hello_.set_resume_key(std::move(session_key));
}

absl::Status Resumption::run(const absl::Status& why, std::chrono::steady_clock::duration* round_trip) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kTimeout = std::chrono::milliseconds(700);
  constexpr auto kPause = std::chrono::milliseconds(20);
  const bool new_series = replied_.exchange(false, std::memory_order_relaxed);
  if (new_series) since_ = Clock::now();
  absl::Status status = why;
  for (bool first = new_series; first || Clock::now() - since_ < kTimeout; first = false) {
    if (!first) std::this_thread::sleep_for(kPause);
    v1::HelloReply reply;
    const Clock::time_point start = Clock::now();
    status = transport_.hello(hello_, &reply);
    *round_trip = Clock::now() - start;
    if (absl::IsUnavailable(status)) continue;
    if (!status.ok()) return status;
    if (reply.session_key() != hello_.resume_key()) return absl::NotFoundError("it has lost the session");
    return transport_.open(hello_.resume_key());
  }
  return status;
}

}  // namespace tt::client
