#include "server/session/offloader.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "engine/device/cancellation.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

// Frees at least this much at a time, because a move examines all tensors of a session.
constexpr uint64_t kMinWanted = uint64_t{64} << 20;
constexpr std::chrono::milliseconds kPause{5};  // between two looks for an idle session
constexpr int kLooks = 3;  // at a session that is idle, because status and metrics lock sessions for a moment, too

struct Candidate {
  Clock::time_point since;
  std::shared_ptr<Session> session;
};

}  // namespace

bool Offloader::make_room(Device device, size_t bytes, const Account* account) try {
  const Cancellation::Pause pause;  // the time is not the frame's
  const Clock::time_point until = Clock::now() + kPatience;
  for (;;) {
    bool may_wait = false;
    {
      MutexLock lock(mutex_);
      if (closed_) return false;
      if (move_out(device, std::max<uint64_t>(bytes, kMinWanted), account, &may_wait) != 0) return true;
    }
    if (!may_wait || cancel_requested() || Clock::now() >= until) return false;
    std::this_thread::sleep_for(kPause);  // without the lock, which others need
  }
} catch (const std::exception&) {  // the host has no memory left
  return false;
}

uint64_t Offloader::move_out(Device device, uint64_t wanted, const Account* account, bool* may_wait) {
  const Clock::time_point now = Clock::now();
  std::vector<Candidate> candidates;
  for (std::shared_ptr<Session>& session : sessions_()) {
    if (session->account().get() == account || session->account()->held() == session->offloaded_bytes()) continue;
    const std::optional<Clock::time_point> since = session->idle_since();
    if (since && now - *since >= after_) {
      candidates.push_back({*since, std::move(session)});
    } else {
      *may_wait |= (since ? *since - now : Clock::duration(0)) + after_ < kPatience;
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.since < b.since; });
  uint64_t freed = 0;
  for (const Candidate& candidate : candidates) {
    if (freed >= wanted || cancel_requested()) break;
    bool in_use = false;
    uint64_t moved = 0;
    for (int looks = 0; looks < kLooks && (looks == 0 || (moved == 0 && in_use)); ++looks) {
      if (looks != 0) std::this_thread::sleep_for(kPause);
      in_use = false;
      moved = candidate.session->offload(device, wanted - freed, &in_use);
    }
    freed += moved;
    *may_wait |= in_use && after_ < kPatience;
  }
  return freed;
}

void Offloader::close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

}  // namespace tt::server
