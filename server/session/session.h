// Session: a client's ordered conversation and all it owns. Independent of gRPC.
//
// Thread-safe. Frames are executed one at a time, on the calling thread; transfers run beside them. While an
// instruction is suspended (engine/program/suspension.h), downloads, status and close() proceed. What is wrong with an
// operation stands in its results' place; an invalid frame is answered with a fault and ends the session, and so does
// an exception that nobody expected. A frame can be cancelled from any thread (engine/device/cancellation.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/device/cancellation.h"
#include "engine/program/executor.h"
#include "engine/program/slot_table.h"
#include "engine/program/suspension.h"
#include "engine/session/context.h"
#include "proto/wire.h"
#include "server/limits.h"
#include "server/session/replies.h"
#include "server/session/sites.h"
#include "server/transfer/byte_source.h"
#include "server/transfer/copy_stream.h"
#include "server/transfer/download_states.h"
#include "server/transfer/shared_segment.h"
#include "server/transfer/transfer.h"
#include "server/transfer/transfer_monitor.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

// A tensor's bytes, about to be sent; or the error in its place.
struct Download {
  v1::TensorDescription tensor;
  std::unique_ptr<ByteSource> bytes;
  std::optional<v1::Error> error;
  uint64_t offset = 0;  // of the first byte that will be sent
  uint64_t state = 0;   // names the tensor's bytes; 0: the download cannot be continued
};

// How a download that broke off goes on: after `offset` bytes where the tensor's bytes are still those that `state`
// named, else from the start. One of more than `keep_above` bytes can be continued in its turn.
struct DownloadResume {
  uint64_t offset = 0;
  uint64_t state = 0;
  uint64_t keep_above = UINT64_MAX;
};

class Session {
 public:
  struct Options {
    uint64_t id = 0;
    std::string key;
    std::string client;
    uint64_t memory_limit = 0;  // 0: none
    Limits limits;
    Transfers::Patience patience;
    std::chrono::milliseconds frame_time_limit{0};  // 0: none
    // Sessions of one tenant may see what others of it left in memory. 0: a tenant of its own.
    uint64_t tenant = 0;
    std::shared_ptr<TransferMonitor> monitor = nullptr;  // the engine's; null: one of the session's own
  };

  explicit Session(Options options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Executes `frame`, unless it was executed already, and fills the cleared `reply`. Does not throw.
  void execute(const v1::Frame& frame, v1::Reply* reply);
  // Instead of execute(), for bytes that are no frame, or one too large: a fault, which ends the session.
  void reject(const Error& error, v1::Reply* reply);
  // Cancels the frames up to that sequence, whether they run or are still to come: instructions that have not run
  // poison their results. Gives the sequence of the last frame executed. Does not wait.
  uint64_t cancel(uint64_t through);
  // Cancels the frame that runs where it has run for longer than the limit. Does not wait.
  void enforce_time_limit();
  // Whether a frame is being executed.
  bool busy() const { return running_.load(std::memory_order_relaxed) != 0; }
  // From now on frames are refused, and the one that runs waits for no transfer. Does not wait.
  void stop();
  // A transfer's call: limited in number, and cancelled when the session ends. See TransferMonitor::begin.
  absl::StatusOr<std::unique_ptr<TransferMonitor::Call>> begin_call(TransferMonitor::Direction direction,
                                                                    std::function<void()> cancel);
  // See Transfers::begin. Where the transfer is under way, its call is cancelled: the client has given it up.
  absl::StatusOr<std::unique_ptr<Upload>> begin_upload(uint64_t transfer, uint64_t bytes, Device device = {},
                                                       bool resume = false);
  // Waits until frame `after` has been executed, asking `go_on` now and then, and until a device has the tensor.
  // INVALID_ARGUMENT on a name that stands for nothing, CANCELLED where go_on said so.
  absl::StatusOr<Download> begin_download(uint64_t handle, uint64_t after, absl::FunctionRef<bool()> go_on,
                                          const DownloadResume& resume = {});
  // After a download whose bytes are let go of: its tensor's memory is not kept for longer than its tensor.
  void finish_download() { download_states_->sweep(); }

  // The segment shared with the client; null where there is none. `offer` makes a new one in the old one's place.
  // Its pages are charged to the session; null also where they are much of what it is limited to.
  std::shared_ptr<SharedSegment> segment() const;
  std::shared_ptr<SharedSegment> offer_segment();

  // Cancels the frame that runs, and refuses those to come. Does not wait: close() frees what the session holds.
  void begin_closing();
  // Frees everything the session owns, to the byte. Cancels the frame that runs and waits for its end: for as long as a
  // library's call in it takes. Idempotent.
  void close();
  bool over() const { return over_.load(std::memory_order_acquire); }
  // Sequence of the last frame executed.
  uint64_t executed() const { return executed_.load(std::memory_order_acquire); }

  // The attachment (Sessions::attach) whose stream may have frames executed; 0: none. Sessions sets it.
  void set_stream(uint64_t attachment) { stream_.store(attachment, std::memory_order_release); }
  uint64_t stream() const { return stream_.load(std::memory_order_acquire); }

  uint64_t id() const { return options_.id; }
  const std::string& key() const { return options_.key; }
  const std::string& client() const { return options_.client; }
  const Limits& limits() const { return options_.limits; }
  const std::shared_ptr<Account>& account() const { return account_; }
  // Everything but `connected`.
  v1::SessionStatus status() const;

 private:
  class RunningFrame;
  void execute_next(const v1::Frame& frame, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_);
  void run(const v1::Frame& frame, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_);
  void run_program(const v1::Frame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_);
  // Lets go of the lock until the instruction can run or the frame is cancelled.
  void wait_for(Suspension& suspension) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_);
  void refuse(const Error& error, size_t instruction, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_);
  void repeat(const v1::Frame& frame, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void keep(uint64_t sequence, const v1::Reply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void answer_reads(const v1::Frame& frame, bool again, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void give_error(v1::Error error, uint64_t* room, v1::ReadResult* result);
  void answer(const v1::Read& read, bool again, uint64_t* room, v1::ReadResult* result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<v1::Error> read_from_device(uint64_t handle, const Tensor& tensor, std::string* bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void download_from_device(uint64_t handle, Tensor tensor, Download* download) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<v1::Error> poison_of(uint64_t handle, const PendingErrors& taint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void acknowledge(const PoisonRef& poison) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void release_names() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_);
  void free_everything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_, mutex_);
  void publish(uint64_t executed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  const std::shared_ptr<Sites> sites_ = std::make_shared<Sites>();
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<TransferMonitor> monitor_;
  const std::shared_ptr<WakeUp> wake_up_ = std::make_shared<WakeUp>();  // for a suspended frame
  const std::shared_ptr<Transfers> transfers_;
  const std::shared_ptr<DownloadStates> download_states_;
  const std::shared_ptr<CopyStream> downloads_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> executed_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> stream_{0};
  std::atomic<uint64_t> running_{0};  // sequence of the frame that runs; written under progress_mutex_
  Cancellation cancellation_;

  // Held for a frame from its begin to its end, also while it is suspended. Taken before mutex_.
  Mutex turn_;
  Program program_ ABSL_GUARDED_BY(turn_);  // the frame's
  HostCharge program_charge_ ABSL_GUARDED_BY(turn_);

  // Held while a frame executes, and not while it is suspended.
  Mutex mutex_;
  Context context_ ABSL_GUARDED_BY(mutex_);
  Executor executor_ ABSL_GUARDED_BY(mutex_);
  SlotTable slots_ ABSL_GUARDED_BY(mutex_);
  Replies replies_ ABSL_GUARDED_BY(mutex_);

  mutable Mutex progress_mutex_;  // for those who wait or look, taken for moments only
  CondVar progress_;
  int waiting_ ABSL_GUARDED_BY(progress_mutex_) = 0;
  uint64_t cancel_through_ ABSL_GUARDED_BY(progress_mutex_) = 0;
  v1::SessionStatus status_ ABSL_GUARDED_BY(progress_mutex_);  // as of the last frame
  std::shared_ptr<SharedSegment> segment_ ABSL_GUARDED_BY(progress_mutex_);
  HostCharge segment_charge_ ABSL_GUARDED_BY(progress_mutex_);
};

}  // namespace tt::server
