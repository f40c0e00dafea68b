// Transfers: the uploads of one session, from their first byte until an `uploaded` instruction takes them.
//
// Bytes are written directly to storages that are charged to the session's account and adopted by the instruction.
// Bytes for a GPU go through staging memory, in a separate stream, while later bytes are still arriving. The received
// part of a failed upload is kept for a while, so that the client can resume it. Thread-safe: uploads arrive on their
// own threads; an `uploaded` instruction suspends its session until the upload is complete.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/memory/allocator.h"
#include "engine/program/suspension.h"
#include "engine/schema/error.h"
#include "engine/session/service.h"
#include "engine/tensor/storage.h"
#include "proto/sha256.h"
#include "server/transfer/copy_stream.h"
#include "server/transfer/device_writer.h"
#include "server/transfer/transfer_monitor.h"
#include "server/transfer/uploaded_contents.h"

namespace tt {
class ImageInput;
class ImageObjects;
class ImageOutput;
class ImageTensors;
}  // namespace tt

namespace tt::server {

class Upload;

// How a wait for memory ended: some may have been released; none will be; the call was cancelled.
enum class MemoryWait : uint8_t { kRetry, kNoMore, kCancelled };

class Transfers final : public Expirable, public std::enable_shared_from_this<Transfers> {
 public:
  // Maximum time that an instruction waits: `progress` for a transfer that makes no progress, `resume` for a failed
  // transfer to be resent. The received part of a failed transfer is also kept for `resume`. An upload without room in
  // the account waits for `memory` while the session executes no frame.
  struct Timeouts {
    std::chrono::milliseconds progress{60'000};
    std::chrono::milliseconds resume{10'000};
    std::chrono::milliseconds memory{200};
  };

  // A complete transfer. `copied` passes when the device has the bytes; null on the CPU.
  struct CompletedUpload {
    Ref<Storage> storage;
    std::shared_ptr<Event> copied;
  };

  // `monitor` drops expired parts of failed transfers; without it they are dropped when the next transfer begins.
  // `wake_up` is notified when a suspended `uploaded` instruction may continue.
  Transfers(std::shared_ptr<Account> account, uint64_t max_transfers, Timeouts timeouts,
            std::weak_ptr<TransferMonitor> monitor = {},
            std::shared_ptr<SuspensionNotifier> wake_up = std::make_shared<SuspensionNotifier>(),
            std::shared_ptr<UploadedContents> contents = std::make_shared<UploadedContents>())
      : copy_stream_(std::make_shared<CopyStream>(std::move(account))),
        max_transfers_(max_transfers),
        timeouts_(timeouts),
        monitor_(std::move(monitor)),
        wake_up_(std::move(wake_up)),
        contents_(std::move(contents)) {}

  // Begins an upload of `bytes` bytes and allocates its memory on `device`. Fails with INVALID_ARGUMENT if there is no
  // such device or the size is invalid, RESOURCE_EXHAUSTED if the account has no room, ABORTED (retriable) if too many
  // transfers are pending, FAILED_PRECONDITION once closed, ALREADY_EXISTS while the same transfer is in progress.
  // After INVALID_ARGUMENT and RESOURCE_EXHAUSTED the transfer is refused: its instruction fails at once. A failed
  // transfer starts over or, with `resume`, continues after its received bytes. If the transfer is already complete,
  // taken or abandoned, the client lost the reply: the bytes are dropped or, with `resume`, the upload is complete at
  // once. If `digest` is not empty, the bytes must have this SHA-256, and are added to the session's contents.
  // If the account has no room, calls `wait_for_memory` without a lock and tries again, until that returns kNoMore or
  // the transfer's instruction waits for it: only then have all frames before it released their memory. CANCELLED if it
  // returns kCancelled; the transfer may begin again.
  absl::StatusOr<std::unique_ptr<Upload>> begin(
      uint64_t transfer, uint64_t bytes, Device device = {}, bool resume = false, std::string digest = {},
      absl::FunctionRef<MemoryWait()> wait_for_memory = [] { return MemoryWait::kNoMore; });

  // Returns a transfer if it is complete, else throws Suspended. Throws Error if `transfer` did not arrive in time, was
  // refused or already taken, does not have `bytes`, or is not on `device`; throws Cancelled in a cancelled frame, and
  // abandons the transfer.
  CompletedUpload take(uint64_t transfer, uint64_t bytes, Device device);

  // While held, uploads do not complete: their calls wait.
  void hold(bool held);
  // For images of the session (engine/session/image.h): uploads that are complete or refused and wait for their
  // instruction, and which ones were taken. An upload that is arriving is not part of an image: its client repeats it.
  void write_image(ImageTensors* tensors, ImageOutput* out);
  void read_image(ImageInput* in, const ImageObjects& objects);

  // Drops all transfers and ends suspensions. Uploads in progress fail at their next chunk.
  void close();
  void drop_expired() override;

 private:
  friend class Upload;
  class AwaitedTransfer;
  using Clock = std::chrono::steady_clock;
  enum class State { kArriving, kBroken, kRefused, kComplete };
  // Created by begin() for one Upload. A later upload with the same number has a new entry.
  struct Entry {
    explicit Entry(uint64_t transfer) : transfer(transfer) {}
    const uint64_t transfer;
    State state = State::kArriving;
    CompletedUpload upload;
    uint64_t received = 0;                           // kBroken: bytes at the start of upload.storage, if any
    Clock::time_point last_progress = Clock::now();  // when bytes last arrived, or the start
    std::unique_ptr<Sha256> hash;                    // kBroken: of the received bytes; null if there was no digest
    std::optional<Error> refusal;                    // kRefused: the error of its instruction
  };
  using EntryPtr = std::shared_ptr<Entry>;

  // Refuses a transfer that has not begun.
  absl::Status reject(uint64_t transfer, const std::string& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status refuse(const EntryPtr& entry, const Error& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status failed(const EntryPtr& entry, const Error& error);
  bool on_progress(const EntryPtr& entry);                                 // false if the transfer is no longer needed
  bool on_complete(const EntryPtr& entry, std::shared_ptr<Event> copied);  // like on_progress
  void on_broken(const EntryPtr& entry, Ref<Storage> storage, uint64_t received, std::unique_ptr<Sha256> hash);
  bool is_current(const EntryPtr& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remember_taken(uint64_t transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drop_expired_locked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool was_taken(uint64_t transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time at which an instruction stops waiting for the transfer.
  Clock::time_point deadline(uint64_t transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether take() need not suspend: the transfer is complete or will never be.
  bool can_be_taken(uint64_t transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void abandon(uint64_t transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<CopyStream> copy_stream_;
  const uint64_t max_transfers_;
  const Timeouts timeouts_;
  const std::weak_ptr<TransferMonitor> monitor_;
  const std::shared_ptr<SuspensionNotifier> wake_up_;
  const std::shared_ptr<UploadedContents> contents_;
  Mutex mutex_;
  absl::flat_hash_map<uint64_t, EntryPtr> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> taken_ ABSL_GUARDED_BY(mutex_);  // the last few that were taken or abandoned
  uint64_t awaited_ ABSL_GUARDED_BY(mutex_) = 0;        // transfer of the suspended instruction; 0: none
  Clock::time_point awaited_since_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar released_;
};

// One upload in progress. If destroyed before its last byte, the upload has failed, and its received part is kept
// unless discarded. Used by one thread.
class Upload {
 public:
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Appends the next bytes. Fails with INVALID_ARGUMENT if there are more bytes than announced or their digest is not
  // the announced one, CANCELLED if the
  // session has ended or no longer needs the transfer. If the device fails, the transfer is refused.
  absl::Status append(absl::Span<const char> bytes);
  // Completes an upload that has a digest and no bytes yet with the bytes of `source`, which is on the CPU. Returns
  // false, without an effect, if they do not have the digest: other sessions may write to `source` meanwhile.
  bool copy_from(const Storage& source);
  // Returns the device that receives the bytes; none if it is the CPU or if the bytes are dropped.
  std::optional<Device> device() const;
  // Used instead of append() if device() is set: the device reads `bytes`, which must be in pinned memory and stay
  // valid until the event (never null) has passed. Fails like append().
  absl::StatusOr<std::shared_ptr<Event>> append_in_place(absl::Span<const char> bytes);
  // Refuses the transfer, because the device failed or the bytes are invalid: its instruction fails with this error.
  absl::Status fail(const Error& error) { return owner_->failed(entry_, error); }
  // Whether the transfer's instruction waits for the bytes or may do so later; otherwise the bytes are dropped.
  bool is_needed() const { return storage_ != nullptr; }
  // Discards the received part, which cannot be resumed.
  void discard() { discarded_ = true; }
  uint64_t left() const { return bytes_ - done_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t received() const { return done_; }

 private:
  friend class Transfers;
  Upload(std::shared_ptr<Transfers> owner, Transfers::EntryPtr entry, Ref<Storage> storage, uint64_t bytes,
         uint64_t received, std::string digest = {}, std::unique_ptr<Sha256> hash = nullptr)
      : owner_(std::move(owner)),
        entry_(std::move(entry)),
        storage_(std::move(storage)),
        bytes_(bytes),
        done_(received),
        digest_(std::move(digest)),
        hash_(std::move(hash)) {}
  void write(absl::Span<const char> bytes, uint64_t at);
  absl::Status check_size(absl::Span<const char> bytes) const;
  absl::Status check_digest(absl::Span<const char> bytes);
  void add_content();
  absl::Status advance(size_t bytes, std::shared_ptr<Event> copied);

  std::shared_ptr<Transfers> owner_;
  Transfers::EntryPtr entry_;  // null: the bytes are dropped
  Ref<Storage> storage_;       // null: the bytes are dropped
  uint64_t bytes_;
  uint64_t done_;
  const std::string digest_;      // SHA-256 of all bytes; empty if unknown
  std::unique_ptr<Sha256> hash_;  // of the bytes so far; null if there is no digest
  bool discarded_ = false;
  std::unique_ptr<DeviceWriter> writer_;  // created by the first byte for a GPU
};

// Gives the `uploaded` operator access to its session's transfers.
class TransferService final : public SessionService {
 public:
  explicit TransferService(std::shared_ptr<Transfers> transfers) : transfers_(std::move(transfers)) {}
  Transfers& transfers() { return *transfers_; }
  std::string unsaved() const override { return ""; }  // see Transfers::completed()

 private:
  const std::shared_ptr<Transfers> transfers_;
};

// Kernel of the `uploaded` operator: adopts the transfer's storage.
void uploaded(Call& call);

}  // namespace tt::server
