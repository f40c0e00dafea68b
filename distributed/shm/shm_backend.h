// ShmBackend: collectives and messages between ranks on one host, in shared memory. The ranks are processes, or several
// backends in one process.
//
// To form a group, rank 0 calls create() and distributes the segment's name to the other ranks, which call open(). All
// ranks must then agree that these calls have succeeded; if one of them failed, all destroy their backends and use
// another kind. The segment's name is removed when the last rank has opened it, or with rank 0's backend.
//
// A collective is a sequence of rounds: each rank writes to its own slot, all wait at a barrier, each reads from the
// slots of the others. A slot is written again two rounds later, so that one barrier per round is enough.
//
// Backend's rules for threads apply. Waiting ranks notice within 100 ms that a peer's process ended, that a peer failed
// or called abort(), and that this backend's abort() was called. A wait that lasts longer than the timeout fails. After
// an error in a collective the peers fail with the same text.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "distributed/group/collective.h"
#include "distributed/shm/message_lane.h"
#include "distributed/shm/segment.h"

namespace tt::distributed {

class ShmBackend : public Backend {
 public:
  // The errors of Segment::create() and Segment::open().
  struct Created {
    std::unique_ptr<ShmBackend> backend;  // of rank 0
    std::string name;                     // of the segment, for open()
  };
  static absl::StatusOr<Created> create(int size, std::chrono::milliseconds timeout);
  static absl::StatusOr<std::unique_ptr<ShmBackend>> open(const std::string& name, int rank, int size,
                                                          std::chrono::milliseconds timeout);
  // Marks this rank as having left. The peers do not wait for it any longer; messages that it sent can be received.
  ~ShmBackend() override;

  std::string_view name() const override { return "shm"; }
  void exchange(absl::Span<const char> mine, absl::Span<char> all) override;
  void run(const Collective& collective) override;
  void send(int peer, uint32_t tag, absl::Span<const char> bytes) override;
  void receive(int peer, uint32_t tag, absl::Span<char> bytes) override;
  bool await_message(int peer, uint32_t tag, size_t size, const std::atomic<bool>& stop) override;
  void wake(int peer) override;
  void abort(std::string_view reason) override;

 private:
  using Clock = std::chrono::steady_clock;

  ShmBackend(std::unique_ptr<shm::Segment> segment, std::chrono::milliseconds timeout);

  // The collectives. `bytes` is the size of one rank's piece.
  void all_reduce(const Collective& c, size_t bytes);  // and reduce
  void reduce_parts(const Collective& c, size_t bytes);
  void reduce_scatter(const Collective& c, size_t bytes);
  void broadcast(const Collective& c, size_t bytes);
  void all_gather(const Collective& c, size_t bytes);  // and gather
  void scatter(const Collective& c, size_t bytes);
  void all_to_all(const Collective& c);

  // This rank's slot in the next round, and a rank's slot in the round whose barrier was passed last.
  char* next_slot() const { return segment_->slot(rank_, round_ + 1); }
  const char* slot(int rank) const { return segment_->slot(rank, round_); }
  // Ends the round: waits until all ranks have called it as many times.
  void barrier();

  // The text of the failure of `peer`, or nothing.
  std::optional<std::string> failure_of(int peer) const;
  std::optional<std::string> abort_reason() const;
  // Records the failure of this backend, publishes it to the peers, and throws Error.
  [[noreturn]] void fail_group(const std::string& text);
  void publish_failure(std::string_view text);
  // Checks `peer` and returns the function that reports why waiting for it cannot continue.
  void with_peer(int peer, std::string_view missing, absl::FunctionRef<void(shm::Problem)> body);

  const std::unique_ptr<shm::Segment> segment_;
  const int rank_, size_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::microseconds spin_;
  uint32_t round_ = 0;
  std::vector<shm::LaneSender> senders_;      // per peer
  std::vector<shm::LaneReceiver> receivers_;  // per peer
  std::atomic<bool> aborted_{false};
  mutable Mutex mutex_;
  std::string reason_ ABSL_GUARDED_BY(mutex_);  // of the first failure or abort(); valid if aborted_
};

}  // namespace tt::distributed
