// Sessions: the engine's table of sessions, their leases, and what an engine says to Hello.
//
// A session lives while a stream is attached, and for the lease after; where its client is known to have died, it is
// freed within moments. Thread-safe. One thread watches leases, streams and time limits, and never waits for a session:
// each one that ends is closed on a thread of its own, after its work was cancelled.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "proto/wire.h"
#include "server/limits.h"
#include "server/session/memory_release.h"
#include "server/session/session.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

class Sessions {
 public:
  struct Options {
    Limits limits;
    std::chrono::milliseconds lease{60'000};
    uint64_t session_memory_limit = 0;  // 0: none
    size_t max_sessions = 1024;
    size_t max_sessions_per_address = 768;  // so that clients elsewhere are not locked out
    // Of an engine that runs for one principal: all its sessions' (Account::tenant). 0: each session has its own, and
    // never sees what another one left in memory.
    uint64_t tenant = 0;
    Transfers::Patience patience;
    TransferMonitor::Limits transfers;
    std::chrono::milliseconds frame_time_limit{0};  // 0: none
  };

  explicit Sessions(const Options& options);
  ~Sessions();  // cancels and ends every session

  // Opens a session, or finds one again. NOT_FOUND where it has ended, RESOURCE_EXHAUSTED where there are too many,
  // UNAVAILABLE once stopped.
  // `address`: where the client is, for the limit of sessions from one address.
  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply, absl::string_view address = "");
  // Null where no session has that key.
  std::shared_ptr<Session> find(absl::string_view key) const;
  // Frees a session that is over, or over as soon as the caller's frame is.
  void end(const Session& session);
  // Cancels a session's work and frees everything it holds, without waiting for either. False where no session has
  // that id.
  bool end(uint64_t id);

  // A stream carries the session from now on; the one before is told to end by its `cancel`. `gone`, where there is
  // one, says whether the stream has broken, while its thread is busy with a frame and cannot see it: the lease begins
  // then. Both are called under a lock until detach(). The number names the attachment; 0 where the session has ended.
  uint64_t attach(Session& session, std::function<void()> cancel, std::function<bool()> gone = nullptr);
  // The stream is gone: unless another one has taken over, the lease begins.
  void detach(Session& session, uint64_t attachment);

  std::vector<v1::SessionStatus> list() const;
  // Those that are being closed too.
  size_t size() const;
  // No more Hellos.
  void stop();
  // Lets the frames that run go on for `patience`, but begins no others; then cancels what is left, and waits until
  // every session is freed and its stream ended.
  void end_all(std::chrono::milliseconds patience = {});

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string address;
    std::shared_ptr<Session> session;
    uint64_t attachment = 0;       // the stream's; 0: none
    std::function<void()> cancel;  // its way out
    std::function<bool()> gone;    // whether it has broken; may be null
    Clock::time_point expires;     // without a stream
    Clock::time_point glance;      // when to look whether the client has died
    Clock::duration next_glance{};
  };

  using Entries = absl::flat_hash_map<std::string, Entry>;  // by key

  absl::Status open(const v1::HelloRequest& request, absl::string_view address, std::shared_ptr<Session>* session);
  void start_lease(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void lose_stream(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_leases();
  void watch(Clock::time_point* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_expired(Clock::time_point* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void begin_closing(Entries::iterator at, std::string why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void start_closer(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void close(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);  // what a closing thread does
  void release_memory(const Session& session);

  const Options options_;
  const std::shared_ptr<TransferMonitor> monitor_;
  mutable Mutex mutex_;
  CondVar changed_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  Entries closing_ ABSL_GUARDED_BY(mutex_);                     // cancelled; each has a thread that frees it
  std::vector<std::string> unstarted_ ABSL_GUARDED_BY(mutex_);  // of those, the ones that there was no thread for yet
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_attachment_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  MemoryRelease memory_;
  std::thread leases_;
};

}  // namespace tt::server
