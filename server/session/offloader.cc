#include "server/session/offloader.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/device/cancellation.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

// Frees at least this much at a time, because a move examines all tensors of a session.
constexpr uint64_t kMinWanted = uint64_t{64} << 20;

struct Candidate {
  Clock::time_point since;
  std::shared_ptr<Session> session;
};

}  // namespace

bool Offloader::make_room(Device device, size_t bytes, const Account* account) try {
  const Cancellation::Pause pause;  // the time is not the frame's
  MutexLock lock(mutex_);
  return !closed_ && move_out(device, std::max<uint64_t>(bytes, kMinWanted), account) != 0;
} catch (const std::exception&) {  // the host has no memory left
  return false;
}

uint64_t Offloader::move_out(Device device, uint64_t wanted, const Account* account) {
  const Clock::time_point now = Clock::now();
  std::vector<Candidate> candidates;
  for (std::shared_ptr<Session>& session : sessions_()) {
    if (session->account().get() == account || session->account()->held() == session->offloaded_bytes()) continue;
    const std::optional<Clock::time_point> since = session->idle_since();
    if (since && now - *since >= after_) candidates.push_back({*since, std::move(session)});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.since < b.since; });
  uint64_t freed = 0;
  for (const Candidate& candidate : candidates) {
    if (freed >= wanted || cancel_requested()) break;
    freed += candidate.session->offload(device, wanted - freed);
  }
  return freed;
}

void Offloader::close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

}  // namespace tt::server
