// SharedSegment: the engine's side of the memory it shares with one client of the same host.
//
// What goes to a device or comes from one is not copied on the way: from the first large transfer on a lane is pinned,
// and the device reads and writes its chunks by itself.
//
// Owned by a session, and by the transfers that pass through it; each lane serves one transfer at a time. The client
// is not trusted: nothing is read from the segment but bytes and checked counters, and every wait ends when `go_on`
// says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "proto/shared_ring.h"
#include "proto/wire.h"
#include "server/transfer/byte_source.h"
#include "server/transfer/pinned_range.h"
#include "server/transfer/transfer.h"

namespace tt::server {

class SharedSegment {
 public:
  // Null where the system has none to give, or too many are in use: bytes go through gRPC then.
  static std::shared_ptr<SharedSegment> create();
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  v1::SharedMemory describe() const;

  // Moves all of an upload, or of a tensor. Fails with CANCELLED where go_on said so, INVALID_ARGUMENT where the
  // client's counters lie; the lane is unusable afterwards, FAILED_PRECONDITION says so. Throws Error where the
  // tensor's device fails.
  absl::Status receive(Upload& upload, absl::FunctionRef<bool()> go_on);
  absl::Status send(ByteSource& tensor, absl::FunctionRef<bool()> go_on);

  // Whether a client was seen holding the segment and holds it no more: its process has ended.
  bool client_gone();

 private:
  SharedSegment(std::unique_ptr<shared_ring::Segment> segment, uint64_t nonce);

  struct Guarded {
    shared_ring::End end ABSL_GUARDED_BY(mutex);
    TimedMutex mutex{};  // one transfer at a time
    bool broken ABSL_GUARDED_BY(mutex) = false;
    std::optional<PinnedRange> pages ABSL_GUARDED_BY(mutex){};  // tried with the first transfer that it is worth for
  };
  static bool within_reach(Guarded& lane, std::optional<Device> device, uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lane.mutex);

  std::unique_ptr<shared_ring::Segment> segment_;
  const uint64_t nonce_;
  Guarded upload_;
  Guarded download_;
  std::atomic<bool> client_seen_{false};
};

}  // namespace tt::server
