// AuditLog: a line of JSON for every session, administrative call and refusal: who, from where, what, with what
// outcome.
//
// Lines have the fields time, event, principal, peer, session, outcome ("ok" or gRPC's name of the code) and reason;
// empty fields are left out. Tokens and session keys never occur. Each line is one write, so that the file can be
// rotated by renaming it: reopen() follows. Peers cause lines at any rate, so those of each principal are limited, and
// so are refusals; a line says how many were left out. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "server/log.h"

namespace tt::server {

class AuditLog {
 public:
  struct Record {
    absl::string_view event;  // "session.open"
    absl::string_view principal = {};
    absl::string_view peer = {};  // gRPC's format
    uint64_t session = 0;
    absl::Status outcome{};
    absl::string_view reason = {};  // in addition to the outcome's message
    bool is_limited = true;         // whether the principal causes such lines
  };

  // Records nothing.
  AuditLog() = default;
  ~AuditLog();
  // Appends to `file` (mode 0600). FAILED_PRECONDITION if it cannot be opened.
  static absl::StatusOr<std::unique_ptr<AuditLog>> open(std::string file);

  void record(const Record& record);
  // Records a call that was refused before it reached a service.
  void refused(absl::string_view peer, const absl::Status& status);
  // Opens the file by its name again, if it was renamed.
  void reopen();

 private:
  using Clock = std::chrono::steady_clock;
  struct Limit {
    explicit Limit(bool is_refusals);
    LogLimit rate;
    int64_t left_out = 0;      // lines, since the last one that was written
    Clock::time_point last{};  // of them
  };
  // Writes a line for each principal whose last line was left out, at least `quiet` ago.
  void summarise(Clock::duration quiet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void append(const Record& record, int64_t left_out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::string file_;
  Mutex mutex_;
  FileDescriptor fd_ ABSL_GUARDED_BY(mutex_);
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;  // the last write failed
  // By whether the lines are those of refused calls, and by principal; "": the engine's own.
  std::map<std::pair<bool, std::string>, Limit> limits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
