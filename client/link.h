// Link: the ordered way to an engine and back, whole across broken connections.
//
// Callers append to the frame under construction. A sender thread writes it while fewer than
// kWindow frames are unacknowledged, and lets it grow otherwise; a caller that waits for an
// answer writes and reads by itself, so that a round trip costs no thread hop. Two roles make
// that safe: one thread at a time writes, one at a time reads. Frames are kept until a reply has
// acknowledged them; after a broken stream they are sent again, and the engine skips (and answers
// again) what it had executed.
//
// Every wait of a caller throws Interrupted where its thread is interrupted (client/interruption.h). The link goes on:
// what was sent is executed, and an answer that nobody waits for any more is dropped. A second interrupt, while work
// from before the first one is unanswered, cancels what the engine has not executed.
//
// Thread-safe: one mutex, never held while the transport is at work or a hook is called. In a forked copy of its
// process it is of no use: calls throw, releases and the end do nothing. Throws the error that ended the link
// (kConnection; RemoteError where the engine refused a frame) from every later call.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "client/interruption.h"
#include "client/outgoing_frame.h"
#include "client/session.h"
#include "client/transport.h"
#include "engine/schema/op.h"

namespace tt::client {

class Link {
 public:
  static constexpr uint64_t kWindow = 2;                // unacknowledged frames that keep the engine busy
  static constexpr int kMaxInstructions = 1024;         // in a frame: a few stay in cache; beyond, a caller waits
  static constexpr size_t kMaxBytes = size_t{4} << 20;  // likewise, where the engine allows as much
  static constexpr size_t kMaxNames = size_t{1} << 18;  // of results, likewise

  // Opens the stream; `hello` is what a resume repeats.
  Link(std::unique_ptr<Transport> transport, v1::HelloRequest hello);
  ~Link();  // not of a forked copy: the original's sender waits on what it would destroy
  bool is_forked_copy() const;

  const v1::HelloReply& engine() const { return engine_; }
  // What a source line is called, for errors: set once, before the first call.
  void name_sites(std::function<std::string(uint32_t)> site_name) { site_name_ = std::move(site_name); }

 private:
  // Locks mutex_. Throws where the link has ended, and in a forked copy.
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
  // The lock, held, and the frame to append to. While it lives nobody else appends.
  class Appending {
   public:
    v1::Frame& frame() {
      link_.mutex_.assume_held();  // here and below: lock_ holds it
      return link_.building_->message();
    }
    // A cleared instruction at the frame's end, which drops what was released before it.
    v1::Instruction* add_instruction();
    // Throws Error (RuntimeError) where the session would have more handles than the engine takes. Before
    // add_instruction().
    void check_names(const Op& op, size_t count) const;
    // `count` new names, the first of them.
    uint64_t name(size_t count) {
      link_.mutex_.assume_held();
      link_.building_->count_names(count);
      return std::exchange(link_.next_handle_, link_.next_handle_ + count);
    }
    ~Appending();

   private:
    friend class Link;
    Appending(Link& link, size_t bytes, absl::FunctionRef<void()> before_waiting);
    Appending(Link& link, size_t bytes);  // beyond the limits
    Link& link_;
    CallLock lock_;
  };
  // Waits while the frame has no room for `bytes` more. Other threads of the language run meanwhile; before that,
  // `before_waiting` is called, to keep alive what they may drop.
  Appending append(size_t bytes, absl::FunctionRef<void()> before_waiting) {
    return Appending(*this, bytes, before_waiting);
  }
  // Does not wait: for a few bytes that an instruction will follow.
  Appending append_beyond_limits(size_t bytes) { return Appending(*this, bytes); }

  // Names a handle to be dropped with the next instruction or frame. Never waits, never throws.
  void release(uint64_t handle) noexcept;
  // Waits for the tensors' descriptions and, unless meta_only, their bytes.
  std::vector<v1::ReadResult> read(absl::Span<const uint64_t> handles, bool meta_only);
  // Sends what is queued; gives the last sequence.
  uint64_t flush();
  // Waits until everything up to now has been executed.
  void synchronize();
  // Cancels what was issued so far and has not been executed; its results are errors. Throws Error where the engine
  // cannot.
  void cancel();
  // As Transport's. They survive broken connections for as long as the link does, and go on where they broke off; after
  // half a minute without progress they throw Error(kConnection). A poisoned tensor is RemoteError.
  void upload(uint64_t transfer, Device device, absl::Span<const char> bytes);
  void download(uint64_t handle, absl::Span<char> into);
  // The error `failure` stands for, as callers see it.
  RemoteError remote_error(const v1::Error& error) const;

  // Ends the session on the engine, waiting for that `patience` at most, then the link. False where an interrupt cut
  // the wait short.
  bool close(std::chrono::milliseconds patience) noexcept { return finish(patience, InterruptTimer()); }

  Session::Counters counters() const;  // waits are its caller's to count

 private:
  struct Waiter {       // on the stack of a caller in read()
    uint64_t sequence;  // of the frame that asks
    uint64_t first_request;
    std::vector<v1::ReadResult> results;  // by request
    size_t missing;
  };

  // Throws in a forked copy, where nobody may unlock it.
  Mutex& mutex_of_process() const;
  void throw_if_over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of those below, functions that use the transport release mutex_ meanwhile.
  bool is_full(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool has_unsent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sent_ < sealed_ || !building_->empty(); }
  bool may_send() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool has_work_for_sender() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool can_wait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void role_is_free() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void seal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void write_one(std::chrono::milliseconds patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void read_one(std::chrono::milliseconds patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void handle(v1::Reply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void answer(v1::ReadResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void acknowledge(uint64_t executed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void reap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void broke(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void resume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status reconnect(const absl::Status& why, int attempt);
  void end(Error error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t flush_locked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs whichever role is free until `done`; throws where the link ends before, or the thread is interrupted.
  void drive(absl::FunctionRef<bool()> done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void wait_for_room(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps until something changes, `patience` at most.
  void sleep(std::chrono::milliseconds patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks whether the calling thread is interrupted, and if so does what a second interrupt should.
  bool ask_interrupt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void note_interrupt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<uint64_t> cancel_queued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_sender();
  bool sender_step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void sender_sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void watch_download(int by);
  bool finish(std::chrono::milliseconds patience, InterruptTimer timer) noexcept;
  // Of one transfer, in its caller's hands: what it is, and when its calls last came further.
  struct Attempts {
    const char* name;  // "upload"
    size_t bytes;
    TransferProgress progress;
    std::chrono::steady_clock::time_point moved = std::chrono::steady_clock::now();
    uint64_t moved_to = 0;
    int in_vain = 0;       // calls since then
    InterruptTimer timer;  // across calls, each of which may be too short to ask
  };
  template <typename Transfer>
  absl::Status noting_interrupts(Transfer transfer);
  // After a call's failure: returns where it is worth trying again, throws where not.
  void recover_transfer(const absl::Status& status, Attempts* attempts);
  // Before another try: sleeps for longer, the more of them were in vain. Throws Interrupted.
  void pause(Attempts* attempts);

  const int forks_;  // of this process, and its ancestors, when the link was made
  std::unique_ptr<Transport> transport_;
  v1::HelloRequest hello_;
  v1::HelloReply engine_;
  std::function<std::string(uint32_t)> site_name_;
  size_t max_bytes_ = kMaxBytes;

  mutable Mutex mutex_;
  std::unique_ptr<OutgoingFrame> building_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<OutgoingFrame>> in_flight_ ABSL_GUARDED_BY(mutex_);  // sequences (acknowledged_, sealed_]
  std::vector<std::unique_ptr<OutgoingFrame>> reaped_ ABSL_GUARDED_BY(mutex_);    // acknowledged, not yet cleared
  std::vector<std::unique_ptr<OutgoingFrame>> spare_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> releases_ ABSL_GUARDED_BY(mutex_);
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(mutex_);  // reads without an answer
  uint64_t next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t released_ ABSL_GUARDED_BY(mutex_) = 0;  // of the names given
  uint64_t next_request_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t sealed_ ABSL_GUARDED_BY(mutex_) = 0;          // the last sequence given
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;            // the last one written on this stream
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;    // the last one that a reply has confirmed
  uint64_t flush_through_ ABSL_GUARDED_BY(mutex_) = 0;   // send up to here, whatever the window
  uint64_t interrupted_at_ ABSL_GUARDED_BY(mutex_) = 0;  // the last sequence issued when a caller was last interrupted
  uint64_t being_written_ ABSL_GUARDED_BY(mutex_) = 0;   // a sequence whose frame a writer still looks at, or 0
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool resuming_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> broken_ ABSL_GUARDED_BY(mutex_);  // of the stream, until resumed
  int resumes_in_vain_ ABSL_GUARDED_BY(mutex_) = 0;             // since the last reply
  std::chrono::steady_clock::time_point in_vain_since_;         // the resuming thread's alone
  std::optional<Error> over_ ABSL_GUARDED_BY(mutex_);           // why the link ended
  std::optional<v1::Error> fault_ ABSL_GUARDED_BY(mutex_);      // where the engine refused a frame, how it said so
  Session::Counters counters_ ABSL_GUARDED_BY(mutex_);

  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool sender_asleep_ ABSL_GUARDED_BY(mutex_) = false;
  // Asleep for moments only: what can wait until then does not wake it.
  bool sender_naps_ ABSL_GUARDED_BY(mutex_) = false;
  bool callers_send_ ABSL_GUARDED_BY(mutex_) = false;  // of late, callers that wait have sent what there was
  CondVar sender_;                                     // the sender thread
  CondVar waiting_;                                    // callers
  int waiting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int downloads_ ABSL_GUARDED_BY(mutex_) = 0;  // callers away in one
  std::thread sender_thread_;
};

}  // namespace tt::client
