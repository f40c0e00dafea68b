// Sessions: the engine's table of sessions, their leases, and the reply to Hello.
//
// A session exists while a stream is attached, and for the lease afterwards; if its client process is known to have
// died, it is freed within moments. Thread-safe. One thread watches leases, streams and time limits, and never waits
// for a session: each session that ends is cancelled, then closed on a separate thread.
//
// Streams, leases and the end of sessions are in sessions_leases.cc, images on the disk in sessions_images.cc, what all
// sessions share in shared_image.cc, the rest in sessions.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "distributed/peers/peer_policy.h"
#include "distributed/store/connection_gate.h"
#include "proto/wire.h"
#include "server/audit.h"
#include "server/limits.h"
#include "server/session/memory_release.h"
#include "server/session/offloader.h"
#include "server/session/principal.h"
#include "server/session/publications.h"
#include "server/session/session.h"
#include "server/session/session_store.h"
#include "server/trace/tracer.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

class Sessions {
 public:
  struct Options {
    Limits limits;
    std::chrono::milliseconds lease{60'000};
    uint64_t session_memory_limit = 0;  // 0: no limit
    size_t max_sessions = 1024;
    // Tenant of all sessions (Account::tenant), for an engine that runs for one principal. 0: each session has its own
    // tenant, and never sees data that another session left in freed memory.
    uint64_t tenant = 0;
    Transfers::Timeouts transfer_timeouts;
    TransferMonitor::Limits transfers;
    std::chrono::milliseconds frame_time_limit{0};  // 0: no limit
    bool compression = true;                        // whether transfers' chunks may be compressed
    // Returns where the sessions of a principal store checkpoints; null: nowhere. Empty: no session does.
    std::function<std::shared_ptr<const CheckpointRoot>(const Principal& principal)> checkpoint_root;
    distributed::PeerPolicy peers;    // the other engines, and where sessions may listen; by default none and nowhere
    distributed::OpenGate open_gate;  // listens there; null: without limits on connections
    std::shared_ptr<FrameTimes> frame_times;  // of all sessions; null: frames are not timed
    std::shared_ptr<FairQueues> queues;       // divide processors and GPUs among principals; null: they are not divided
    std::shared_ptr<Tracer> tracer;           // receives the sessions' spans; null: there are none
    bool is_isolated = false;                 // other principals are served by other processes
    std::shared_ptr<SessionStore> store;      // of sessions that are persistent; null: no session is
    // Where tensors of sessions that have been idle for `offload_after` go when another session needs their memory;
    // null: they stay.
    std::shared_ptr<OffloadPlace> offload;
    std::chrono::milliseconds offload_after{60'000};
    AuditLog* audit = nullptr;  // records publications; null: does not; outlives this object
    // Called after a session has ended, under no lock; may be empty.
    std::function<void(const Session&)> on_end;
  };

  explicit Sessions(const Options& options);
  ~Sessions();  // cancels and ends every session

  // Opens a session, or resumes one. Returns NOT_FOUND if the session to resume has ended, RESOURCE_EXHAUSTED if there
  // are too many sessions, UNAVAILABLE after stop(). `address` is the client's address. `principal` names who opens the
  // session: its sessions share the contents of their uploads, and only it resumes them. `number` is the number of a
  // new session, which no other one has; 0: the next.
  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply, absl::string_view address = "",
                     const Principal& principal = {}, uint64_t number = 0);
  // Whether transfers' chunks may be compressed.
  bool compression() const { return options_.compression; }
  // Adds the session of an image, whose record was read from `source` already. Its lease begins. Returns an error if
  // the image is damaged or does not fit into this engine.
  // `blocks` are the bytes that the images of all sessions have in common; null: the image was read alone.
  absl::Status adopt(const SessionRecord& record, const Principal& principal, ImageSource* source,
                     ImageBlocks* blocks = nullptr);
  // Writes, for another process that has read the images of sessions with `blocks`, what belongs to none of them: the
  // publications, and shared tensors whose sessions have ended. `is_passed` returns whether a session was passed on.
  // Throws Error.
  void write_shared(absl::FunctionRef<bool(uint64_t session)> is_passed, ImageBlocks* blocks, ImageSink* sink);
  absl::Status adopt_shared(Publications::FindPrincipal find, ImageBlocks* blocks, ImageSource* source);
  // Stores images of the session from now on, the first one before the return; with `every` 0 no longer. Returns
  // FAILED_PRECONDITION with the reason if that is not possible.
  absl::Status persist(Session& session, const Persistence& persistence, v1::PersistReply* reply);
  // Returns null if no session has that key.
  std::shared_ptr<Session> find(absl::string_view key) const;
  // Removes a session and frees its memory. Call after the session's last frame.
  void end(const Session& session);
  // Cancels a session's work and frees its memory, without waiting for either. Returns false if no session has that id.
  bool end(uint64_t id);
  // The same for all sessions of a principal, and ends its publications. Returns the number of sessions.
  size_t end_all_of(absl::string_view principal);

  // Attaches a stream to the session; the previous stream is ended by its `cancel`. `is_broken`, if not null, returns
  // whether the stream is broken, because the stream's thread cannot detect this while it executes a frame. The lease
  // starts when `is_broken` returns true. Both functions are called under a lock, until detach(). Returns the
  // attachment's number, or 0 if the session has ended.
  uint64_t attach(Session& session, std::function<void()> cancel, std::function<bool()> is_broken = nullptr);
  // Detaches a stream. The lease starts, unless another stream has been attached since.
  void detach(Session& session, uint64_t attachment);

  std::vector<v1::SessionStatus> list() const;
  std::vector<std::shared_ptr<Session>> all() const;
  // While frozen, no session is opened, resumed or ended by its lease: Hello returns UNAVAILABLE.
  void freeze(bool frozen);
  // What the sessions of a principal hold, and what they have done since the engine's start, those included that have
  // ended.
  struct Usage {
    uint64_t sessions = 0, bytes = 0, offloaded = 0, handles = 0;
    uint64_t opened = 0, frames = 0, instructions = 0, failed = 0;
    std::shared_ptr<Quota> quota;  // null: none
    std::shared_ptr<Share> share;
    void add_work(const v1::SessionStatus& status);
  };
  std::map<std::string, Usage> usage() const;
  // Null if tensors of idle sessions stay in their memory.
  const OffloadPlace* offload() const { return options_.offload.get(); }
  // Whether new sessions are accepted: false after stop().
  bool accepts() const;
  // Calls visit(session) for every session, under a lock: `visit` must not wait.
  void visit(absl::FunctionRef<void(const Session&)> visit) const;
  // Records the spans of all sessions, for a process that exits without ending them.
  void end_traces();
  // Includes sessions that are being closed.
  size_t size() const;
  // The number of publications. Those that persist remain without sessions.
  size_t publications() const;
  Publications& published() const { return *publications_; }
  // Another process continues all sessions, which are held: ends their streams, so that the clients go there.
  void end_streams();
  // Refuses Hello from now on.
  void stop();
  // Lets running frames continue for `timeout` and starts no new ones; then cancels the remaining frames, and waits
  // until every session has been freed and its stream cancelled.
  void end_all(std::chrono::milliseconds timeout = {});

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string address;
    std::shared_ptr<Session> session;
    uint64_t attachment = 0;          // number of the attached stream; 0: none
    std::function<void()> cancel;     // ends the stream
    std::function<bool()> is_broken;  // whether the stream is broken; may be null
    Clock::time_point expires;        // end of the lease, if no stream is attached
    Clock::time_point next_check;     // when to check whether the client has died
    Clock::duration check_interval{};
    std::shared_ptr<Quota> quota;  // of the principal
    Clock::time_point next_image;  // if the session is persistent
  };

  using Entries = absl::flat_hash_map<std::string, Entry>;  // keyed by the digest of the session's key

  // The session that a Hello opens or resumes, and its key.
  struct Opened {
    std::shared_ptr<Session> session;
    std::string key;
  };
  absl::Status open(const v1::HelloRequest& request, absl::string_view address, const Principal& principal,
                    uint64_t number, Opened* opened);
  absl::Status resume(const v1::HelloRequest& request, const Principal& principal, Opened* opened)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks the limits of sessions for one more.
  absl::Status check_room(const Principal& principal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes a session with the record's id, digest, client and limit, without adding it.
  std::shared_ptr<Session> make(const SessionRecord& record, absl::string_view address, const Principal& principal,
                                const std::string& traceparent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry& add(const std::shared_ptr<Session>& session, absl::string_view address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Continues a session from its image on the disk.
  absl::Status restore(const std::string& key_digest, absl::string_view address, const Principal& principal)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the session's image. The session is held meanwhile, and stays held if `keep_held` and the result is OK.
  absl::StatusOr<uint64_t> write_image(Session& session, const std::shared_ptr<Quota>& quota,
                                       std::chrono::milliseconds wait, bool keep_held = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void run_images();
  void park_persistent(std::chrono::milliseconds timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void start_lease(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void on_stream_closed(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_leases();
  void watch(Clock::time_point* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_expired(Clock::time_point* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void begin_closing(Entries::iterator at, std::string why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void start_closing_thread(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void close(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);  // runs on a closing thread
  void release_memory(const Session& session);

  const Options options_;
  const std::shared_ptr<TransferMonitor> monitor_;
  const std::shared_ptr<Publications> publications_;
  const std::shared_ptr<ProgramCache> programs_ = std::make_shared<ProgramCache>();
  mutable Mutex mutex_;
  CondVar changed_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  Entries closing_ ABSL_GUARDED_BY(mutex_);  // cancelled; each is freed by its own thread
  std::vector<std::string> closings_without_thread_ ABSL_GUARDED_BY(mutex_);  // keys in closing_ without a thread yet
  absl::flat_hash_map<std::string, std::shared_ptr<ContentIndex>> contents_ ABSL_GUARDED_BY(mutex_);  // by principal
  absl::flat_hash_map<std::string, std::shared_ptr<SharedTensors>> shared_ ABSL_GUARDED_BY(mutex_);   // by principal
  std::map<std::string, Usage> ended_ ABSL_GUARDED_BY(mutex_);  // by principal; without what sessions hold
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_attachment_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool frozen_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  MemoryRelease memory_;
  std::shared_ptr<Offloader> offloader_;                                // null without Options::offload
  absl::flat_hash_set<std::string> restoring_ ABSL_GUARDED_BY(mutex_);  // digests
  absl::flat_hash_map<std::string, Entry> parked_ ABSL_GUARDED_BY(mutex_);
  std::thread leases_;
  Mutex image_mutex_;   // held while an image is written; acquired before mutex_
  std::thread images_;  // writes images; not joinable without a store
  const std::shared_ptr<WindowCompiler> windows_ = make_window_compiler();  // null: switched off
};

}  // namespace tt::server
