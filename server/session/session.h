// Session: executes a client's frames in order and owns everything that they create. Independent of gRPC.
//
// Thread-safe. Frames are executed one at a time, on the calling thread; transfers run concurrently. While an
// instruction is suspended (engine/program/suspension.h), downloads, status and close() proceed. An operation's error
// poisons its results. An invalid frame is answered with a fault and ends the session, and so does an unexpected
// exception. A frame can be cancelled from any thread (engine/device/cancellation.h).
//
// Definitions by subject: frames in session_frames.cc and session_windows.cc, replies in session_reads.cc, uploads,
// downloads and shared memory in session_transfers.cc, images in session_image.cc, offloading in session_idle.cc, the
// rest in session.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "distributed/group/thread_budget.h"
#include "distributed/peers/peer_policy.h"
#include "distributed/store/connection_gate.h"
#include "engine/device/cancellation.h"
#include "engine/device/device_queue.h"
#include "engine/program/executor.h"
#include "engine/program/slot_table.h"
#include "engine/program/suspension.h"
#include "engine/session/context.h"
#include "engine/session/windows.h"
#include "proto/wire.h"
#include "server/checkpoint/root.h"
#include "server/limits.h"
#include "server/session/frame_times.h"
#include "server/session/principal.h"
#include "server/session/program_cache.h"
#include "server/session/publications.h"
#include "server/session/replies.h"
#include "server/session/session_image.h"
#include "server/session/session_offload.h"
#include "server/session/session_trace.h"
#include "server/session/shared_tensors.h"
#include "server/session/sites.h"
#include "server/transfer/byte_source.h"
#include "server/transfer/copy_stream.h"
#include "server/transfer/download_states.h"
#include "server/transfer/shared_segment.h"
#include "server/transfer/transfer.h"
#include "server/transfer/transfer_monitor.h"
#include "teletensor/v1/admin.pb.h"

namespace tt {
class ImageOutput;
}

namespace tt::distributed {
struct GroupMember;
}  // namespace tt::distributed

namespace tt::server {

// A tensor's bytes that are ready to be sent, or its error.
struct Download {
  v1::TensorDescription tensor;
  std::unique_ptr<ByteSource> bytes;
  std::optional<v1::Error> error;
  uint64_t offset = 0;  // offset of the first byte to be sent
  uint64_t state = 0;   // identifies the tensor's bytes; 0: the download cannot be resumed
};

// Resumes a download that failed: at `offset` if the tensor's bytes are still those that `state` identifies, else at
// the start. A download of more than `keep_above` bytes can be resumed later.
struct DownloadResume {
  uint64_t offset = 0;
  uint64_t state = 0;
  uint64_t keep_above = UINT64_MAX;
};

// How a frame was read from its stream. Times are in nanoseconds of the monotonic clock; 0: not known.
struct FrameArrival {
  uint64_t awaited = 0;  // when the read began
  uint64_t received = 0;
  uint64_t bytes = 0;  // on the wire
};

// What a session does at a moment.
struct SessionActivity {
  enum class Phase : uint8_t {
    kIdle,       // has no frame
    kPrepare,    // decodes and fuses a frame
    kExecute,    // executes instructions
    kSuspended,  // an instruction waits for an upload, other engines or a file
    kReply,      // answers reads and releases tensors
  };
  Phase phase = Phase::kIdle;
  Activity::Now now{};  // of kExecute and kSuspended
};

const char* phase_name(SessionActivity::Phase phase);  // "idle", "prepare"

class Session {
 public:
  // Estimated host memory of a session without tensors, without that of its stream.
  static constexpr uint64_t kHostBytes = uint64_t{64} << 10;

  struct Options {
    uint64_t id = 0;
    std::string key;  // the digest of the session's key (session_key.h)
    std::string client;
    uint64_t memory_limit = 0;  // 0: no limit
    Limits limits;
    Transfers::Timeouts transfer_timeouts;
    std::chrono::milliseconds frame_time_limit{0};  // 0: no limit
    // Sessions of one tenant may see data that another session of the tenant left in freed memory. 0: a new tenant.
    uint64_t tenant = 0;
    std::string principal = "";                                       // who opened the session
    std::shared_ptr<TransferMonitor> monitor = nullptr;               // the engine's monitor; null: creates one
    std::shared_ptr<ContentIndex> contents = nullptr;                 // of the principal; null: creates one
    std::shared_ptr<const CheckpointRoot> checkpoint_root = nullptr;  // null: the session may not use checkpoints
    std::shared_ptr<SharedTensors> shared_tensors = nullptr;          // of the principal; null: creates one
    distributed::PeerPolicy peers{};                                  // the other engines; by default none
    distributed::OpenGate open_gate{};                                // listens for them; null: without limits
    std::shared_ptr<FrameTimes> frame_times = nullptr;                // null: frames are not timed
    std::shared_ptr<Quota> quota = nullptr;                           // of the principal; null: none
    std::shared_ptr<FairQueues> queues = nullptr;                     // of the engine; null: frames run at once
    std::shared_ptr<Share> share = nullptr;                           // of the principal, in the queues
    std::shared_ptr<Publications> publications = nullptr;             // of the engine; null: creates one
    std::shared_ptr<ProgramCache> programs = nullptr;                 // of the engine; null: creates one
    Role role = Role::kUser;                                          // of the principal
    std::shared_ptr<SessionTrace> trace = nullptr;                    // null: no spans
    std::shared_ptr<OffloadPlace> offload = nullptr;  // of the engine; null: tensors never leave their device
  };

  explicit Session(Options options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Compiles repeated instructions from now on (engine/session/windows.h). Call at most once, before the first frame.
  void compile_windows(std::shared_ptr<WindowCompiler> compiler);
  // Executes `frame`, unless it was executed already, and fills the cleared `reply`. Does not throw.
  void execute(const v1::Frame& frame, v1::Reply* reply, FrameArrival arrival = {});
  // Called instead of execute() for a frame that is malformed or too large. Replies with a fault, which ends the
  // session.
  void reject(const Error& error, v1::Reply* reply);
  // Cancels the frames up to `through`, running or future: instructions that have not run poison their results. Returns
  // the sequence of the last executed frame. Does not wait.
  uint64_t cancel(uint64_t through);
  // Cancels the running frame if it has exceeded the time limit. Does not wait.
  void enforce_time_limit();
  // What the session does now, as far as relaxed loads show it. Does not wait.
  SessionActivity activity() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return {phase_.load(std::memory_order_relaxed), context_.activity.now()};
  }
  // Describes a source line: "train.py:12 in step".
  std::string describe_site(uint32_t site) const { return sites_->describe(site); }
  const std::string& principal() const { return options_.principal; }
  Role role() const { return options_.role; }
  // Counts what sessions do; null: nobody reads it.
  FrameTimes* times() const { return options_.frame_times.get(); }
  // Whether a frame is being executed.
  bool busy() const { return running_.load(std::memory_order_relaxed) != 0; }
  // Waits until no frame is being executed. Returns false as soon as `wanted` does, which is called every 50 ms.
  bool wait_until_idle(absl::FunctionRef<bool()> wanted);
  // Refuses frames from now on, and ends the running frame's waits for transfers. Does not wait. `why` is for the
  // client: "expired", "was ended by engine shutdown".
  void stop(std::string why = "has ended");
  // Registers a transfer's call: limited in number, and cancelled when the session ends. See TransferMonitor::begin.
  absl::StatusOr<std::unique_ptr<TransferMonitor::Call>> begin_call(TransferMonitor::Direction direction,
                                                                    std::function<void()> cancel);
  // See Transfers::begin. If the transfer is already in progress, cancels the calls that carry it, except `call`,
  // because the client has abandoned them. If a tensor of the principal has bytes with this digest, the upload is
  // complete. If the session has no memory left, waits while it executes frames, which may release some;
  // CANCELLED if `should_continue` returns false meanwhile.
  absl::StatusOr<std::unique_ptr<Upload>> begin_upload(
      uint64_t transfer, uint64_t bytes, Device device = {}, bool resume = false,
      const TransferMonitor::Call* call = nullptr, const std::string& digest = {},
      absl::FunctionRef<bool()> should_continue = [] { return true; });
  // Waits until frame `after` has been executed, calling `should_continue` regularly, and until the tensor has been
  // computed. INVALID_ARGUMENT if `handle` is not in use, CANCELLED if `should_continue` returned false.
  absl::StatusOr<Download> begin_download(uint64_t handle, uint64_t after, absl::FunctionRef<bool()> should_continue,
                                          const DownloadResume& resume = {});
  // Call after a download's bytes have been destroyed, to free its tensor's memory if the tensor has been released.
  void finish_download() { download_states_->sweep(); }

  // segment() returns the segment shared with the client, or null if there is none. offer_segment() replaces it by a
  // new segment, which is charged to the session, and returns the new segment. It returns null if the segment cannot be
  // created or would use too much of the session's memory limit.
  // segment_of() returns the current segment if it has this nonce; FAILED_PRECONDITION otherwise. A call that began
  // on a connection which has since been replaced must not use the lanes of the new segment.
  std::shared_ptr<SharedSegment> segment() const;
  absl::StatusOr<std::shared_ptr<SharedSegment>> segment_of(uint64_t nonce) const;
  std::shared_ptr<SharedSegment> offer_segment();

  // ---- Images of the session (session_image.h), in session_image.cc

  SessionRecord record() const;
  // Waits until no frame runs and an image would be complete, and lets no frame and no upload proceed until release().
  // While an image would lack something, such as a backward pass that waits for the client's hooks, frames continue.
  // FAILED_PRECONDITION with the reason if that is so at the deadline, NOT_FOUND if the session has ended.
  // `is_passed`: all sessions are passed to another process, with what they share; otherwise this one's image is
  // stored.
  absl::Status hold(std::chrono::steady_clock::time_point deadline, bool is_passed = false);
  void release();
  // Writes an image. Requires hold(). Throws Error: NotImplementedError, before anything is written, if the session has
  // something that cannot be part of an image. `blocks` are the bytes that the images of all sessions have in common;
  // null: this is the only image.
  void write_image(ImageSink* sink, ImageBlocks* blocks = nullptr);
  // Restores what write_image() has written after the record, into a session without frames. Throws Error; the session
  // must then be destroyed.
  void read_image(ImageSource* source, ImageBlocks* blocks = nullptr);
  // Its memberships of process groups, for the process that continues the session (distributed/group_image.h). Require
  // hold().
  std::vector<distributed::GroupMember> group_members();
  // Ends the stores that the session serves, so that the other process can serve them at the same ports.
  void end_stores();
  // Serves the stores of the image that was read, and forms its groups again, in the background.
  void resume_groups();
  // Set by the instruction session_persist.
  Persistence persistence() const {
    MutexLock lock(progress_mutex_);
    return persistence_;
  }
  void set_persistence(const Persistence& persistence) {
    MutexLock lock(progress_mutex_);
    persistence_ = persistence;
  }
  // The last frame whose effects the image on the disk contains, which replies report; 0: none.
  uint64_t persisted() const { return persisted_.load(std::memory_order_relaxed); }
  void set_persisted(uint64_t frame) {
    persisted_.store(frame, std::memory_order_relaxed);
    instructions_then_.store(instructions_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  // Whether an image should be written soon, because the client keeps much of what was executed since the last one.
  bool wants_image() const {
    return instructions_.load(std::memory_order_relaxed) - instructions_then_.load(std::memory_order_relaxed) >=
           kInstructionsPerImage;
  }
  // The engine ends, and the session continues from its image: calls end without an answer. Requires hold().
  void park();
  bool is_parked() const { return parked_.load(std::memory_order_acquire); }

  // ---- Idle sessions (session_offload.h), in session_idle.cc

  // When the session was last used; nothing while it is busy, or if its tensors never leave their device.
  std::optional<std::chrono::steady_clock::time_point> idle_since() const;
  // Moves tensors of `device` out of it until `wanted` bytes are free, and returns the number of bytes that were freed:
  // 0 if the session is in use, if an image of it is being written or would lack something, or if nothing can be moved.
  // Does not wait for a frame or a call: sets `*in_use` if one, or a transfer, keeps tensors where they are. They
  // return before the session is used. Does not throw.
  uint64_t offload(Device device, uint64_t wanted, bool* in_use);
  uint64_t offloaded_bytes() const { return offload_ ? offload_->bytes() : 0; }

  // Cancels the running frame, and stops the session. Does not wait: close() frees the session's memory.
  void begin_closing(std::string why = "has ended");
  // Records the session's span, once. Call when the session ends.
  void end_trace() const {
    if (options_.trace) options_.trace->end(status());
  }
  // Frees everything that the session owns. Cancels the running frame and waits for its end, which may take as long as
  // a library call in it. Idempotent.
  void close();
  bool over() const { return over_.load(std::memory_order_acquire); }
  // Whether it executes no more frames: it is over, or is going to be.
  bool has_ended() const { return over() || stopped_.load(std::memory_order_acquire); }
  // Sequence of the last executed frame.
  uint64_t executed() const { return executed_.load(std::memory_order_acquire); }

  // Number of the attachment (Sessions::attach) whose stream may execute frames; 0: none. Set by Sessions.
  void set_stream(uint64_t attachment) { stream_.store(attachment, std::memory_order_release); }
  uint64_t stream() const { return stream_.load(std::memory_order_acquire); }

  uint64_t id() const { return options_.id; }
  const std::string& key() const { return options_.key; }
  const std::string& client() const { return options_.client; }
  const Limits& limits() const { return options_.limits; }
  const std::shared_ptr<Account>& account() const { return account_; }
  // Sets all fields except `connected`.
  v1::SessionStatus status() const;

 private:
  class RunningFrame;
  class RunningTurn;
  void wait_for_release();
  void set_phase(SessionActivity::Phase phase) { phase_.store(phase, std::memory_order_relaxed); }
  void execute_next(const v1::Frame& frame, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  void run(const v1::Frame& frame, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  void run_program(const v1::Frame& frame, uint64_t* bytes_left, v1::Reply* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  // Executes the first `count` instructions of the frame's Program, or of a part of it, except those that were executed
  // before.
  void run_instructions(const Program& program, size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  // The windows of the frame that may be replaced.
  absl::Span<const Windows::Match> find_windows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  // Executes the frame with what replaces its windows, and answers the scalar reads.
  class PartRuns;
  void run_parts(absl::Span<const Windows::Match> windows, uint64_t* bytes_left, v1::Reply* reply)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;  // requires both mutexes; PartRuns refers to the session by a reference
  // Waits until the session has executed a frame or holds less memory, or for half a second. kNoMore if the session has
  // been idle since `idle_since`, which this function updates, for so long that no frame seems to be on its way;
  // kCancelled if `should_continue` returns false.
  MemoryWait wait_for_frames(std::chrono::steady_clock::time_point* idle_since,
                             absl::FunctionRef<bool()> should_continue);
  // Releases the lock until the instruction can run or the frame is cancelled.
  void wait_for(Suspension& suspension) ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  // Totals of the session, whose differences are what a frame took.
  struct FrameCounts {
    uint64_t executed = 0;
    uint64_t failed = 0;
    uint64_t queued = 0;  // nanoseconds
  };
  FrameCounts counts() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records the span of the frame that was executed; `before` are the totals before it.
  void trace_frame(const v1::Frame& frame, const v1::Reply& reply, FrameArrival arrival, uint64_t started,
                   const FrameCounts& before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  Error ended() const;  // the error of a frame after the session's end
  // Of frames that begin from now on; `why` is for ended().
  void refuse_frames(std::string why);
  void refuse(const Error& error, size_t instruction, v1::Reply* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  void repeat(const v1::Frame& frame, v1::Reply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void keep(uint64_t sequence, const v1::Reply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the size that values and error messages of a reply may have.
  uint64_t reply_room() const;
  void answer_reads(const v1::Frame& frame, bool again, uint64_t* bytes_left, v1::Reply* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void answer_scalar(size_t index, Slot slot, uint64_t* bytes_left, v1::Reply* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void fail_numbers(const v1::Frame& frame, v1::Reply* reply);
  void answer(const v1::Read& read, bool again, uint64_t* bytes_left, v1::ReadResult* result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<v1::Error> read_from_device(uint64_t handle, const Tensor& tensor, std::string* bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void download_from_device(uint64_t handle, Tensor tensor, Download* download) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<v1::Error> poison_of(uint64_t handle, const PendingErrors& pending_errors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void acknowledge(const PoisonRef& poison) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void store_async_errors() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void release_names() ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  void free_everything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  void publish(uint64_t executed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Ref<Storage>> write_structure(ImageBlocks* blocks, ImageOutput* out) ABSL_LOCKS_EXCLUDED(mutex_);
  void write_bookkeeping(ImageOutput* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void write_programs(ImageOutput* out) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void read_programs(ImageInput* in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // session_idle.cc
  bool is_offloaded() const { return offload_ && offload_->any(); }
  // Brings back what has left a device. On failure, sets unreturned_, the error of what needs it.
  void bring_back() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the frame, whose program is decoded, needs the values of tensors.
  bool needs_values(const v1::Frame& frame) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution_mutex_, mutex_);
  // Drops what has left a device and was released since.
  void drop_released() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An attempt to free memory that freed none. It is not repeated for a while, unless the session was used, because it
  // examines all tensors of the session.
  struct FailedOffload {
    uint64_t executed = 0;
    std::chrono::steady_clock::time_point until{};
  };
  // The storages of `device` that only this session uses, and whose bytes can leave it. Sets `*in_use` if something
  // else uses another one of its storages.
  std::vector<Ref<Storage>> movable(Device device, bool* in_use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<v1::Error> error_of(const SlotValue& value, bool meta_only) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void write_contents_of(const std::vector<Ref<Storage>>& storages, uint32_t* checksum, ImageSink* sink)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void note_use() {
    if (offload_) last_use_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  }
  static constexpr uint64_t kInstructionsPerImage = 100'000;
  // How often hold() checks its deadline.
  static constexpr std::chrono::milliseconds kHoldInterval{10};

  const Options options_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  const std::shared_ptr<Sites> sites_ = std::make_shared<Sites>();
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<TransferMonitor> monitor_;
  const std::shared_ptr<SuspensionNotifier> wake_up_ =
      std::make_shared<SuspensionNotifier>();  // wakes a suspended frame
  const std::shared_ptr<ContentIndex> content_index_;
  const std::shared_ptr<UploadedContents> contents_ = std::make_shared<UploadedContents>();
  const std::shared_ptr<Transfers> transfers_;
  const std::shared_ptr<DownloadStates> download_states_;
  const std::shared_ptr<CopyStream> downloads_;
  const std::shared_ptr<distributed::ThreadBudget> group_threads_;
  const std::unique_ptr<SessionOffload> offload_;  // used under mutex_; null: tensors never leave their device
  std::atomic<std::chrono::steady_clock::time_point> last_use_{std::chrono::steady_clock::now()};
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> executed_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> stream_{0};
  std::atomic<SessionActivity::Phase> phase_{SessionActivity::Phase::kIdle};
  std::atomic<bool> is_held_{false};  // frames wait for release(); written under progress_mutex_
  std::atomic<bool> parked_{false};
  std::atomic<uint64_t> persisted_{0};
  std::atomic<uint64_t> instructions_{0}, instructions_then_{0};  // executed; at the last image
  std::atomic<uint64_t> running_{0};  // sequence of the running frame, else 0; written under progress_mutex_
  Cancellation cancellation_;
  Flow flow_;                           // of its frames' turns
  Turn* turn_ = nullptr;                // of the running frame; used under execution_mutex_
  std::atomic<uint64_t> waited_ns_{0};  // for turns

  // Held from the start to the end of a frame, including suspensions. Acquired before mutex_.
  Mutex execution_mutex_;
  Program program_ ABSL_GUARDED_BY(execution_mutex_);                      // program of the running frame
  std::vector<ReadPoint> scalar_reads_ ABSL_GUARDED_BY(execution_mutex_);  // of the running frame
  FrameArrival arrival_ ABSL_GUARDED_BY(execution_mutex_);                 // of the running frame

  // Held while a frame executes, but not while it is suspended.
  Mutex mutex_;
  Context context_ ABSL_GUARDED_BY(mutex_);
  Executor executor_ ABSL_GUARDED_BY(mutex_);
  SlotTable slots_ ABSL_GUARDED_BY(mutex_);
  Replies replies_ ABSL_GUARDED_BY(mutex_);
  PoisonRef unreturned_ ABSL_GUARDED_BY(mutex_);              // why tensors could not return to their device
  FailedOffload failed_offload_ ABSL_GUARDED_BY(mutex_);      // the last one
  std::vector<PoisonRef> delivered_ ABSL_GUARDED_BY(mutex_);  // errors that the running frame has answered numbers with

  mutable Mutex progress_mutex_;  // guards waits and the status; held briefly
  CondVar progress_;
  CondVar released_;
  Persistence persistence_ ABSL_GUARDED_BY(progress_mutex_);
  int waiting_ ABSL_GUARDED_BY(progress_mutex_) = 0;
  uint64_t cancel_through_ ABSL_GUARDED_BY(progress_mutex_) = 0;
  std::string end_ ABSL_GUARDED_BY(progress_mutex_) = "has ended";  // why the session was stopped
  v1::SessionStatus status_ ABSL_GUARDED_BY(progress_mutex_);       // updated at the end of each frame
  std::shared_ptr<SharedSegment> segment_ ABSL_GUARDED_BY(progress_mutex_);

  Windows* windows_ ABSL_GUARDED_BY(mutex_) = nullptr;  // a service of the context; null: windows are not compiled
  Program part_ ABSL_GUARDED_BY(execution_mutex_);      // of the running frame
  Windows::Replacement replacement_ ABSL_GUARDED_BY(execution_mutex_);  // of a window of the running frame
};

}  // namespace tt::server
