// Transfers: the uploads of one session, from their first byte until an `uploaded` instruction takes them.
//
// Bytes go straight into storages that the session's account pays for, and that the instruction adopts as they are; to
// those of a GPU through staging memory, in a stream of their own, while others are still arriving.
// Thread-safe: uploads arrive on their own threads, the session's thread waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/allocator.h"
#include "engine/dispatcher.h"
#include "engine/rules/error.h"
#include "engine/storage.h"
#include "server/copy_lane.h"
#include "server/device_writer.h"

namespace tt::server {

class Upload;

class Transfers : public std::enable_shared_from_this<Transfers> {
 public:
  // How long an instruction waits for a transfer that makes no progress, and for one that broke off to be sent again.
  struct Patience {
    std::chrono::milliseconds progress{60'000};
    std::chrono::milliseconds again{10'000};
  };

  // What has arrived. `landed`: when the device has it; null on the CPU.
  struct Arrival {
    Ref<Storage> storage;
    std::shared_ptr<Event> landed;
  };

  Transfers(std::shared_ptr<Account> account, uint64_t max_transfers, Patience patience)
      : lane_(std::make_shared<CopyLane>(std::move(account))), max_transfers_(max_transfers), patience_(patience) {}

  // Takes memory on `device` for `bytes` before any of them is read. INVALID_ARGUMENT where there is no such device,
  // RESOURCE_EXHAUSTED where the account or the table has no room,
  // FAILED_PRECONDITION once closed, ALREADY_EXISTS while the same transfer is under way. One that broke off starts
  // over; a refused one fails its instruction at once; one that is complete, or was taken, is read and dropped (its
  // sender did not hear of it).
  absl::StatusOr<std::unique_ptr<Upload>> begin(uint64_t transfer, uint64_t bytes, Device device = {});

  // Waits until all of `transfer` is there. Throws Error where it does not come, has not `bytes`, or is elsewhere than
  // on `device`.
  Arrival take(uint64_t transfer, uint64_t bytes, Device device);

  // Drops everything; waits end. Uploads under way see it at their next chunk.
  void close();

 private:
  friend class Upload;
  using Clock = std::chrono::steady_clock;
  enum class State { kArriving, kBroken, kRefused, kComplete };
  struct Entry {
    State state = State::kArriving;
    Arrival arrival;
    Clock::time_point moved;       // when it last made progress
    std::optional<Error> refusal;  // kRefused: what its instruction fails with
  };

  absl::Status refuse(uint64_t transfer, const Error& error);  // with mutex_ held
  absl::Status failed(uint64_t transfer, const Error& error);
  bool moved(uint64_t transfer);                                     // false where nobody wants it any more
  bool completed(uint64_t transfer, std::shared_ptr<Event> landed);  // likewise
  void broke_off(uint64_t transfer);
  bool was_taken(uint64_t transfer) const;
  void remember_taken(uint64_t transfer);
  Clock::time_point deadline(const Entry* entry, Clock::time_point began) const;

  const std::shared_ptr<CopyLane> lane_;
  const uint64_t max_transfers_;
  const Patience patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::flat_hash_map<uint64_t, Entry> entries_;
  std::deque<uint64_t> taken_;  // the last few
  bool closed_ = false;
};

// One upload under way. Dropped before its last byte, it has broken off. Used by one thread.
class Upload {
 public:
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // INVALID_ARGUMENT on more bytes than were announced, CANCELLED where the session has ended. Where the device fails,
  // the transfer is refused.
  absl::Status append(absl::Span<const char> bytes);
  // The device that takes the bytes; none where the CPU does, or nobody.
  std::optional<Device> device() const;
  // There alone, and instead of append(): the device reads `bytes`, which lie in pinned memory, by itself; they must
  // stay until the event, which is never null, has passed. Fails as append() does.
  absl::StatusOr<std::shared_ptr<Event>> append_in_place(absl::Span<const char> bytes);
  // The device has not come to the end of what it was given: refuses the transfer.
  absl::Status fail(const Error& error) { return owner_->failed(transfer_, error); }
  uint64_t left() const { return bytes_ - done_; }
  uint64_t bytes() const { return bytes_; }

 private:
  friend class Transfers;
  Upload(std::shared_ptr<Transfers> owner, uint64_t transfer, Ref<Storage> storage, uint64_t bytes)
      : owner_(std::move(owner)), transfer_(transfer), storage_(std::move(storage)), bytes_(bytes) {}
  void write(absl::Span<const char> bytes);
  absl::Status check_room(absl::Span<const char> bytes) const;
  absl::Status moved(size_t bytes, std::shared_ptr<Event> landed);

  std::shared_ptr<Transfers> owner_;
  uint64_t transfer_;
  Ref<Storage> storage_;  // null: the bytes are dropped
  uint64_t bytes_;
  uint64_t done_ = 0;
  std::unique_ptr<DeviceWriter> writer_;  // made at the first byte for a GPU
};

// Makes `transfers` what `uploaded` instructions on this thread wait for.
class TransfersScope {
 public:
  explicit TransfersScope(Transfers* transfers);
  ~TransfersScope();
  TransfersScope(const TransfersScope&) = delete;
  TransfersScope& operator=(const TransfersScope&) = delete;

 private:
  Transfers* saved_;
};

// The `uploaded` operator's kernel for tensors in host memory: adopts the transfer's storage.
void uploaded(Call& call);

}  // namespace tt::server
