// SharedSegment: the engine's side of the memory that an engine shares with one client on the same host.
//
// Large transfers to and from devices need no extra copy: the first large transfer pins the lane, and the device
// accesses the lane's chunks directly.
//
// Owned by a session and by the transfers that use it; each lane serves one transfer at a time. The client is not
// trusted: the engine reads only data bytes and checked counters from the segment, and every wait ends when
// `should_continue` returns false.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "engine/memory/account.h"
#include "proto/message_pipe.h"
#include "proto/wire.h"
#include "server/transfer/byte_source.h"
#include "server/transfer/pinned_range.h"
#include "server/transfer/transfer.h"

namespace tt::server {

class SharedSegment {
 public:
  // Returns null if the system cannot provide a segment or too many are in use; bytes then go through gRPC.
  // Its bytes are charged to `account`, which may be null.
  static std::shared_ptr<SharedSegment> create(std::shared_ptr<Account> account = nullptr);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  v1::SharedMemory describe() const;
  uint64_t nonce() const { return nonce_; }

  // Moves all bytes of an upload or a tensor. Fails with CANCELLED if `should_continue` returned false, and with
  // INVALID_ARGUMENT if the client's counters are invalid. After a failure the lane is unusable, and later calls fail
  // with FAILED_PRECONDITION. Throws Error if the tensor's device fails.
  absl::Status receive(Upload& upload, absl::FunctionRef<bool()> should_continue);
  absl::Status send(ByteSource& tensor, absl::FunctionRef<bool()> should_continue);

  // The ends of a stream's pipes; null if a stream has them already. The segment must outlive them.
  struct Pipes {
    shared_ring::PipeReader frames;
    shared_ring::PipeWriter replies;
  };
  std::unique_ptr<Pipes> claim_pipes();

  // Whether a client had opened the segment and its process has ended.
  bool client_exited();

 private:
  SharedSegment(std::unique_ptr<shared_ring::Segment> segment, uint64_t nonce, std::shared_ptr<Account> account);

  struct Lane {
    shared_ring::LaneEnd end ABSL_GUARDED_BY(mutex);
    TimedMutex mutex{};  // held for one transfer
    bool broken ABSL_GUARDED_BY(mutex) = false;
    std::optional<PinnedRange> pages ABSL_GUARDED_BY(mutex){};  // set by the first large transfer
  };
  static bool device_can_access(Lane& lane, std::optional<Device> device, uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lane.mutex);

  std::unique_ptr<shared_ring::Segment> segment_;
  const uint64_t nonce_;
  const HostCharge charge_;
  Lane upload_;
  Lane download_;
  std::atomic<bool> client_seen_{false};
  std::atomic<bool> has_stream_{false};
};

}  // namespace tt::server
