// Link: a reliable, ordered channel of frames to an engine. Reconnects and resends unacknowledged frames.
//
// Callers append to the frame under construction (SendWindow). A sender thread writes that frame while fewer than
// InFlightLimit frames are unacknowledged, and lets the frame grow otherwise. Over a link with delay, where many frames
// are in flight, it writes them at intervals of at least kMinSpacing: acknowledgements arrive in bursts, and a frame
// for each would be nearly empty. A caller that waits for an answer writes and reads itself, so that a round trip needs
// no thread switch. Two roles make this safe: one thread at a time writes, and one reads. When a stream breaks,
// unacknowledged frames are sent again; the engine skips frames that it has executed and repeats their answers.
//
// Every wait of a caller throws Interrupted if its thread is interrupted (client/connection/interruption.h). The link
// remains usable: sent frames are executed, and answers without a waiting caller are dropped. A second interrupt, while
// frames from before the first one are unanswered, cancels the frames that the engine has not executed; if the engine
// does not answer within a second, a thread of its own repeats that until it has.
//
// Thread-safe: one mutex, never held during a call of the transport or a hook. In a forked child calls throw, and
// release() and the destructor do nothing. After the link has ended, every call throws the error that ended it:
// kConnection, or RemoteError if the engine refused a frame.
//
// Sources: link.cc (appending, the two roles), sender.cc (the sender thread), wait.cc (waits of callers, the link's
// end), transfer.cc (uploads and downloads), persist.cc (engines that end and continue).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "client/connection/interruption.h"
#include "client/link/counters.h"
#include "client/link/download_queue.h"
#include "client/link/frame_log.h"
#include "client/link/in_flight_limit.h"
#include "client/link/kept_uploads.h"
#include "client/link/pending_reads.h"
#include "client/link/remote_error.h"
#include "client/link/resumption.h"
#include "client/link/scalar_reads.h"
#include "client/link/send_window.h"
#include "client/link/sender_wakeup.h"
#include "client/link/transfer_retry.h"
#include "client/link/upload_queue.h"
#include "client/transport/transport.h"
#include "engine/schema/op.h"

namespace tt::client {

class Link {
 public:
  // Opens the stream; a resume repeats `hello`. Throws Error (kConnection).
  Link(std::unique_ptr<Transport> transport, v1::HelloRequest hello);
  // Must not run in a forked child, which has no sender thread to join.
  ~Link();
  bool is_forked_copy() const;

  const v1::HelloReply& engine() const { return engine_; }
  // Sets the function that names a source line in errors. Call it once, before any other call.
  void name_sites(std::function<std::string(uint32_t)> site_name) { site_name_ = std::move(site_name); }

 private:
  // Locks mutex_. Throws if the link has ended or the process is a forked child.
  class ABSL_SCOPED_LOCKABLE CallLock {
   public:
    explicit CallLock(const Link& link) ABSL_EXCLUSIVE_LOCK_FUNCTION(link.mutex_) : lock_(link.mutex_of_process()) {
      link.throw_if_over();
    }
    ~CallLock() ABSL_UNLOCK_FUNCTION() {}
    void unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }

   private:
    MutexLock<> lock_;
  };

 public:
  // Holds the lock while its owner appends to the frame. Other threads can append after the object is destroyed.
  class Appending {
   public:
    v1::Frame& frame() {
      link_.mutex_.assume_held();  // lock_ holds the mutex, here and below
      return link_.window_.building().message();
    }
    // Adds a cleared instruction, which carries the handles released before it.
    v1::Instruction* add_instruction();
    // Throws Error (RuntimeError) if the engine does not allow so many results, or so many handles in the session. Call
    // it before add_instruction().
    void check_names(const Op& op, size_t count) const;
    // Returns the first of `count` new handles.
    uint64_t name(size_t count) {
      link_.mutex_.assume_held();
      return link_.window_.name(count);
    }
    // The instruction of an upload was added.
    void uploaded(uint64_t transfer) {
      link_.mutex_.assume_held();
      link_.kept_uploads_.used_in(transfer, link_.window_.sealed() + 1);
    }
    ~Appending();

   private:
    friend class Link;
    Appending(Link& link, const FrameSize& size, absl::FunctionRef<void()> before_waiting);
    Appending(Link& link, const FrameSize& size);  // does not wait
    Link& link_;
    CallLock lock_;
  };
  // Waits while the frame has no room for a part of this size. Other threads of the embedding language run during the
  // wait and may drop the caller's arguments, so `before_waiting` is called first to keep them alive. Throws Error
  // (ValueError) if the engine would refuse a frame of this part alone.
  Appending append(const FrameSize& size, absl::FunctionRef<void()> before_waiting) {
    return Appending(*this, size, before_waiting);
  }
  // Appends without waiting, to a new frame if the current one has no room. Only for a few bytes that precede an
  // instruction.
  Appending append_at_once(const FrameSize& size) { return Appending(*this, size); }

  // Drops a handle with the next instruction or frame. Never waits, never throws.
  void release(uint64_t handle) noexcept;
  // Waits for the tensors' descriptions and, unless `meta_only`, their bytes.
  std::vector<v1::ReadResult> read(absl::Span<const uint64_t> handles, bool meta_only);
  // The same in steps. begin_read() appends the requests, and waits only if the frame is full, as append() does;
  // `pending` must stay valid until abandon_read(). has_arrived() does not wait; at intervals it handles the
  // replies that have arrived. finish_read() waits for the answers; it returns false if they had arrived.
  void begin_read(absl::Span<const uint64_t> handles, bool meta_only, PendingRead* pending);
  bool has_arrived(const PendingRead& pending);
  bool finish_read(const PendingRead& pending);
  void abandon_read(PendingRead* pending) noexcept;
  // The same for the element of a one-element tensor on the CPU. read_scalar() returns null, without an effect, if the
  // engine does not support such reads or too many are unanswered.
  Ref<PendingScalar> read_scalar(uint64_t handle, absl::FunctionRef<void()> before_waiting);
  bool has_arrived(const PendingScalar& number);
  bool finish_read(const PendingScalar& number);
  // Sets the trace context of the frames with the instructions that are issued from now on. Waits only if many frames
  // are unsent, which contexts that change with every call would otherwise make without end.
  void set_trace_context(std::string traceparent);
  // Sends everything queued. Returns the last frame's sequence number.
  uint64_t flush();
  // Waits until everything issued so far has been executed.
  void synchronize();
  // Asks the engine to store images of the session on its disk, from which it continues after the engine has ended and
  // started again: every `every` seconds, or never again if that is 0. From now on the link keeps the frames and the
  // uploads that the last image lacks, up to limits, and repeats them then; it waits `wait` seconds for the engine. What
  // cannot be repeated ends the link with an error that says so. Throws Error with the engine's reason.
  void persist(double every, double wait);
  // The `uploaded` instruction of a transfer was issued.
  void uploaded(uint64_t transfer);
  // Cancels everything issued so far that has not been executed; the results of cancelled instructions are poisoned.
  // Throws Error if the engine does not support it.
  void cancel();
  // Like the functions of Transport, but unless the link has ended, they continue after a broken connection at the
  // point of failure (TransferRetry). download() throws RemoteError if the tensor is poisoned.
  //
  // If UploadQueue's limits have room for the bytes, upload() copies them, returns false, and they are sent in the
  // background; otherwise it returns true when the engine has received them. If an upload fails in the background, the
  // instruction that waits for its bytes fails in the engine. Calls `before_waiting` before it waits, which may throw.
  bool upload(
      uint64_t transfer, Device device, absl::Span<const char> bytes, absl::FunctionRef<void()> before_waiting = [] {});
  void download(uint64_t handle, absl::Span<char> into);
  // Like download(), without waiting, to memory of its own. The handle must stay valid until the download is done or
  // dropped. Throws in a forked child.
  std::shared_ptr<BackgroundDownload> download_in_background(uint64_t handle, size_t size);
  // Converts an error of the engine to the exception for the caller.
  RemoteError remote_error(const v1::Error& error) const;

  // Throws Interrupted if `timer` is due and the calling thread is interrupted. For waits outside this class.
  void check_interrupt(InterruptTimer* timer);

  // Ends the session in the engine, then ends the link. Cancels the session's work if it takes longer than `timeout`.
  // Returns false if an interrupt ended the wait.
  bool close(std::chrono::milliseconds timeout) noexcept { return finish(timeout, InterruptTimer()); }

  // Logs when the next frames are sent and acknowledged, as many as `max_frames`, until stop_frame_log().
  void start_frame_log(size_t max_frames);
  std::vector<SentFrame> stop_frame_log();

  Counters counters() const;  // without waits, which Session counts

 private:
  // Returns mutex_. Throws in a forked child, where no thread would unlock the mutex.
  Mutex& mutex_of_process() const;
  void throw_if_over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- link.cc. Functions that use the transport release mutex_ during its calls.
  bool may_send() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !broken_ && !over_ && window_.may_send() && !is_pacing();
  }
  // Whether the next frame waits because the last one was sent a moment ago.
  bool is_pacing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return window_.may_delay() && window_.sent_recently(InFlightLimit::Clock::now());
  }
  void write_one(std::chrono::milliseconds timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether a reply has arrived.
  bool read_one(std::chrono::milliseconds timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void handle(v1::Reply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void clear_acknowledged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void role_is_free() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void stream_broke(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Handles the replies that had arrived when a write failed; they may contain the reason.
  void read_rest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void resume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end(Error error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- persist.cc
  // The engine continues from an image: prepares what it has not executed to be sent again. Returns why that is not
  // possible, or "".
  std::string repeat_after(uint64_t executed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_uploads_again(std::vector<KeptUploads::Bytes> uploads);

  // ---- sender.cc
  bool has_work_for_sender() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool can_wait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_sender();
  bool sender_step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void sender_sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- wait.cc
  // Performs any free role until `done` returns true. Throws if the link ends first or the thread is interrupted.
  void drive(absl::FunctionRef<bool()> done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void wait_for_room(const FrameSize& size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires at most SendWindow::kMaxReads handles.
  void request(absl::Span<const uint64_t> handles, bool meta_only, PendingRead* pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets a read; takes its requests out of the frame under construction.
  void drop(PendingRead* pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Handles replies if it is time to; `arrived` tells whether the answer to a read in frame `sequence` is among them.
  bool poll_for(uint64_t sequence, absl::FunctionRef<bool()> arrived) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool wait_for(uint64_t sequence, absl::FunctionRef<bool()> arrived) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps until the link's state changes or the next check for interrupts is due. During an interruption of the
  // connection it warns the user. Returns whether the language turned the warning into an exception, which ends the
  // wait.
  bool sleep_in_wait(const InterruptTimer& timer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool warn_of_interruption() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps until the link's state changes or `timeout` has passed.
  void sleep(std::chrono::milliseconds timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the calling thread is interrupted. Handles a second interrupt.
  bool check_interrupt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void record_interrupt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cancels everything issued so far; in the background if the engine does not answer soon.
  void cancel_surely() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_canceller();
  absl::StatusOr<uint64_t> cancel_queued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until the frame is acknowledged or the link has ended. Returns false if an interrupt ended the wait.
  bool wait_for_end(uint64_t sequence, std::chrono::milliseconds timeout, InterruptTimer* timer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool finish(std::chrono::milliseconds timeout, InterruptTimer timer) noexcept;

  // ---- transfer.cc
  template <typename Transfer>
  absl::Status recording_interrupts(Transfer transfer);
  enum class Mode { kCaller, kBackground };
  // Returns when the engine has received all bytes.
  void send_upload(uint64_t transfer, Device device, absl::Span<const char> bytes, Mode mode);
  // Handles a failed call: returns if another attempt may succeed, throws otherwise.
  void recover_transfer(const absl::Status& status, TransferRetry* retry, Mode mode);
  void check_connection();
  bool check_stream();
  void watch_download(int change);

  const int forks_;  // number of forks before the link was created
  std::unique_ptr<Transport> transport_;
  v1::HelloReply engine_;
  std::function<std::string(uint32_t)> site_name_;
  std::unique_ptr<Resumption> resumption_;

  mutable Mutex mutex_;
  SendWindow window_ ABSL_GUARDED_BY(mutex_);
  InFlightLimit in_flight_limit_ ABSL_GUARDED_BY(mutex_);
  PendingReads reads_ ABSL_GUARDED_BY(mutex_);
  ScalarReads numbers_ ABSL_GUARDED_BY(mutex_);
  InFlightLimit::Clock::time_point polled_ ABSL_GUARDED_BY(mutex_);  // last call of has_arrived() that read replies
  uint64_t asked_after_ ABSL_GUARDED_BY(mutex_) = 0;  // number of instructions at the last call of has_arrived()
  uint64_t next_request_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t interrupted_at_ ABSL_GUARDED_BY(mutex_) = 0;  // the last sequence issued at the time of the last interrupt
  uint64_t cancel_through_ ABSL_GUARDED_BY(mutex_) = 0;  // the last sequence that canceller_ cancels
  bool cancelling_ ABSL_GUARDED_BY(mutex_) = false;      // canceller_ runs
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool resuming_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> broken_ ABSL_GUARDED_BY(mutex_);  // why the stream broke, until resumed
  bool all_read_ ABSL_GUARDED_BY(mutex_) = false;               // a read has returned the stream's final status
  // When the stream broke, until a reply arrives; several streams may break in between.
  std::optional<InFlightLimit::Clock::time_point> interrupted_since_ ABSL_GUARDED_BY(mutex_);
  bool has_warned_ ABSL_GUARDED_BY(mutex_) = false;                 // of this interruption
  std::optional<Error> over_ ABSL_GUARDED_BY(mutex_);               // why the link ended
  std::optional<v1::Error> refused_frame_ ABSL_GUARDED_BY(mutex_);  // the engine's error, if it refused a frame
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  FrameLog frame_log_ ABSL_GUARDED_BY(mutex_);

  SenderWakeup sender_ ABSL_GUARDED_BY(mutex_);
  CondVar wake_sender_;
  CondVar callers_;  // callers that wait for a change of state
  int sleeping_callers_ ABSL_GUARDED_BY(mutex_) = 0;
  int downloads_ ABSL_GUARDED_BY(mutex_) = 0;  // number of downloads in progress
  std::thread sender_thread_;
  std::thread canceller_;               // started when it is first needed; assigned under the mutex
  KeptUploads kept_uploads_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> upload_again_;  // assigned under the mutex
  std::optional<UploadQueue> uploads_;  // empty if the transport has no background uploads
  DownloadQueue background_downloads_{[this](uint64_t handle, absl::Span<char> into) { download(handle, into); }};
};

}  // namespace tt::client
