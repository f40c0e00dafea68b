// Transfers: the uploads of one session, from their first byte until an `uploaded` instruction takes them.
//
// Bytes go straight into storages that the session's account pays for, and that the instruction adopts as they are; to
// those of a GPU through staging memory, in a stream of their own, while others are still arriving. What an upload that
// broke off has received is kept for a while, for a client that continues it.
// Thread-safe: uploads arrive on their own threads; an `uploaded` instruction suspends its session until they have.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/memory/allocator.h"
#include "engine/program/suspension.h"
#include "engine/schema/error.h"
#include "engine/session/service.h"
#include "engine/tensor/storage.h"
#include "server/transfer/copy_stream.h"
#include "server/transfer/device_writer.h"
#include "server/transfer/transfer_monitor.h"

namespace tt::server {

class Upload;

class Transfers final : public Expiring, public std::enable_shared_from_this<Transfers> {
 public:
  // How long an instruction waits for a transfer that makes no progress, and for one that broke off to be sent again.
  // What a broken transfer has received is kept for as long as `again`.
  struct Patience {
    std::chrono::milliseconds progress{60'000};
    std::chrono::milliseconds again{10'000};
  };

  // What has arrived. `landed`: when the device has it; null on the CPU.
  struct Arrival {
    Ref<Storage> storage;
    std::shared_ptr<Event> landed;
  };

  // `monitor` drops what has expired of broken transfers; without one that happens when the next transfer begins.
  // `wake_up` is notified where a suspended `uploaded` instruction may go on.
  Transfers(std::shared_ptr<Account> account, uint64_t max_transfers, Patience patience,
            std::weak_ptr<TransferMonitor> monitor = {}, std::shared_ptr<WakeUp> wake_up = std::make_shared<WakeUp>())
      : lane_(std::make_shared<CopyStream>(std::move(account))),
        max_transfers_(max_transfers),
        patience_(patience),
        monitor_(std::move(monitor)),
        wake_up_(std::move(wake_up)) {}

  // Takes memory on `device` for `bytes` before any of them is read. INVALID_ARGUMENT where there is no such device,
  // RESOURCE_EXHAUSTED where the account has no room, ABORTED (retriable) where the table has none,
  // FAILED_PRECONDITION once closed, ALREADY_EXISTS while the same transfer is under way. One that broke off starts
  // over or, with `resume`, continues after the bytes that it has; a refused one fails its instruction at once; one
  // that is complete, or was taken or given up, is read and dropped (its sender did not hear of it), and with `resume`
  // has all its bytes.
  absl::StatusOr<std::unique_ptr<Upload>> begin(uint64_t transfer, uint64_t bytes, Device device = {},
                                                bool resume = false);

  // Gives what has arrived, once all of it has. Throws Suspended before; Error where `transfer` did not come in time,
  // was refused or taken already, has not `bytes`, or is not on `device`; Cancelled in a cancelled frame, which gives
  // the transfer up.
  Arrival take(uint64_t transfer, uint64_t bytes, Device device);

  // Drops everything; suspensions end. Uploads under way see it at their next chunk.
  void close();
  void drop_expired() override;

 private:
  friend class Upload;
  class AwaitedTransfer;
  using Clock = std::chrono::steady_clock;
  enum class State { kArriving, kBroken, kRefused, kComplete };
  // Made by begin() for one Upload, which alone changes it: a later one under the same number has its own.
  struct Entry {
    explicit Entry(uint64_t transfer) : transfer(transfer) {}
    const uint64_t transfer;
    State state = State::kArriving;
    Arrival arrival;
    uint64_t received = 0;                   // kBroken: bytes at the start of arrival.storage, where there is one
    Clock::time_point moved = Clock::now();  // when it last made progress
    std::optional<Error> refusal;            // kRefused: what its instruction fails with
  };
  using EntryPtr = std::shared_ptr<Entry>;

  absl::Status refuse(const EntryPtr& entry, const Error& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status failed(const EntryPtr& entry, const Error& error);
  bool moved(const EntryPtr& entry);                                     // false where nobody wants it any more
  bool completed(const EntryPtr& entry, std::shared_ptr<Event> landed);  // likewise
  void broke_off(const EntryPtr& entry, Ref<Storage> storage, uint64_t received);
  bool is_current(const EntryPtr& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remember_taken(uint64_t transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drop_expired_locked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool was_taken(uint64_t transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When an instruction that waits for the transfer has waited long enough.
  Clock::time_point deadline(uint64_t transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether it can be taken, or never will be.
  bool can_be_taken(uint64_t transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void give_up(uint64_t transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<CopyStream> lane_;
  const uint64_t max_transfers_;
  const Patience patience_;
  const std::weak_ptr<TransferMonitor> monitor_;
  const std::shared_ptr<WakeUp> wake_up_;
  Mutex mutex_;
  absl::flat_hash_map<uint64_t, EntryPtr> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> taken_ ABSL_GUARDED_BY(mutex_);  // the last few that were taken or given up
  uint64_t awaited_ ABSL_GUARDED_BY(mutex_) = 0;        // the transfer that an instruction is suspended for; 0: none
  Clock::time_point awaited_since_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// One upload under way. Dropped before its last byte, it has broken off, and what it received is kept unless it was
// discarded. Used by one thread.
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
  absl::Status fail(const Error& error) { return owner_->failed(entry_, error); }
  // What was received is of no use: it is not kept.
  void discard() { discarded_ = true; }
  uint64_t left() const { return bytes_ - done_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t received() const { return done_; }

 private:
  friend class Transfers;
  Upload(std::shared_ptr<Transfers> owner, Transfers::EntryPtr entry, Ref<Storage> storage, uint64_t bytes,
         uint64_t received)
      : owner_(std::move(owner)),
        entry_(std::move(entry)),
        storage_(std::move(storage)),
        bytes_(bytes),
        done_(received) {}
  void write(absl::Span<const char> bytes);
  absl::Status check_room(absl::Span<const char> bytes) const;
  absl::Status moved(size_t bytes, std::shared_ptr<Event> landed);

  std::shared_ptr<Transfers> owner_;
  Transfers::EntryPtr entry_;  // null: the bytes are dropped
  Ref<Storage> storage_;       // likewise
  uint64_t bytes_;
  uint64_t done_;
  bool discarded_ = false;
  std::unique_ptr<DeviceWriter> writer_;  // made at the first byte for a GPU
};

// How the `uploaded` operator finds its session's transfers.
class TransferService final : public SessionService {
 public:
  explicit TransferService(std::shared_ptr<Transfers> transfers) : transfers_(std::move(transfers)) {}
  Transfers& transfers() { return *transfers_; }

 private:
  const std::shared_ptr<Transfers> transfers_;
};

// The `uploaded` operator's kernel: adopts the transfer's storage.
void uploaded(Call& call);

}  // namespace tt::server
