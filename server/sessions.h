// Sessions: the engine's table of sessions, their leases, and what an engine says to Hello.
//
// A session lives while a stream is attached, and for the lease after; where its client is known to have died, it is
// freed within moments. Thread-safe; one thread of its own waits for leases to run out.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/wire.h"
#include "server/limits.h"
#include "server/session.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

class Sessions {
 public:
  struct Options {
    Limits limits;
    std::chrono::milliseconds lease{60'000};
    uint64_t session_memory_limit = 0;  // 0: none
    size_t max_sessions = 1024;
    Transfers::Patience patience;
  };

  explicit Sessions(Options options);
  ~Sessions();  // ends every session

  // Opens a session, or finds one again. NOT_FOUND where it has ended, RESOURCE_EXHAUSTED where there are too many,
  // UNAVAILABLE once stopped.
  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply);
  // Null where no session has that key.
  std::shared_ptr<Session> find(absl::string_view key) const;
  // Frees a session at once.
  void end(const Session& session);
  // The same, and cancels the session's stream. False where no session has that id.
  bool end(uint64_t id);

  // A stream carries the session from now on; the one before is told to end by its `cancel`. The number names the
  // attachment; 0 where the session has ended.
  uint64_t attach(const Session& session, std::function<void()> cancel);
  // The stream is gone: unless another one has taken over, the lease begins.
  void detach(const Session& session, uint64_t attachment);

  std::vector<v1::SessionStatus> list() const;
  size_t size() const;
  // No more Hellos.
  void stop();
  // Lets running frames finish, then ends every session and its stream.
  void end_all();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::shared_ptr<Session> session;
    uint64_t attachment = 0;       // the stream's; 0: none
    std::function<void()> cancel;  // its way out
    Clock::time_point expires;     // without a stream
    Clock::time_point glance;      // when to look whether the client has died
    Clock::duration next_glance{};
  };

  absl::Status open(const v1::HelloRequest& request, std::shared_ptr<Session>* session);
  void start_lease(Entry& entry);
  void run_leases();
  std::vector<std::shared_ptr<Session>> take_expired(Clock::time_point now, Clock::time_point* next);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  absl::flat_hash_map<std::string, Entry> entries_;  // by key
  uint64_t last_id_ = 0;
  uint64_t last_attachment_ = 0;
  bool stopped_ = false;
  bool ending_ = false;
  std::thread leases_;
};

}  // namespace tt::server
