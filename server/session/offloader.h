// Offloader: makes room on a device by moving tensors of idle sessions out of it.
//
// Registered as the process's RoomMaker by Sessions. Chooses sessions that have not been used for a time, the longest
// idle first, and never the one that asks. A session that is in use is passed over; if nothing could be moved, waits up
// to kPatience for one that ends its use and is then idle for long enough. One thread at a time moves tensors, for as
// long as the disk takes to write what is needed; others wait for it. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/memory/room_maker.h"
#include "server/session/session.h"

namespace tt::server {

class Offloader final : public RoomMaker {
 public:
  // Lists the sessions. Must not wait for a lock under which memory is allocated.
  using List = std::function<std::vector<std::shared_ptr<Session>>()>;

  Offloader(std::chrono::milliseconds after, List sessions) : after_(after), sessions_(std::move(sessions)) {}
  bool make_room(Device device, size_t bytes, const Account* account) override;
  // Waits for calls in progress. Later ones return false, and the list is not used any more.
  void close();

  static constexpr std::chrono::seconds kPatience{1};

 private:
  // `may_wait`: whether a session that has something to move may become idle within kPatience.
  uint64_t move_out(Device device, uint64_t wanted, const Account* account, bool* may_wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::chrono::milliseconds after_;
  const List sessions_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tt::server
