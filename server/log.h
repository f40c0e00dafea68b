// log: the daemon's log on standard error, including messages of gRPC and protobuf.
//
// As text, or with a JSON object per line: time (RFC 3339, UTC), level, message and, where the line concerns one,
// session, principal and peer. Lines of JSON are ASCII: whatever a client's text contains, it cannot end a line or a
// string. Tokens and session keys never occur. Thread-safe after start_log().
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace tt::server {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

// What a line concerns: fields of a JSON object, which are left out if they are empty. Text does not contain them.
struct LogSubject {
  uint64_t session = 0;
  absl::string_view principal = {};
  absl::string_view peer = {};  // in gRPC's format, or an address
};

// `level` is one of spdlog's names. Call once, at start.
void start_log(const std::string& level, LogFormat format = LogFormat::kText);
// Logs a line that concerns a session, a principal or a peer. Other lines use spdlog's functions.
void log_line(LogLevel level, const LogSubject& subject, absl::string_view text);

// Limits the rate of log lines that clients can cause at one place in the code: a burst of lines, then one line per
// `interval`. The first line after a gap reports how many lines were dropped. Thread-safe.
class LogLimit {
 public:
  explicit LogLimit(int burst = 20, std::chrono::milliseconds interval = std::chrono::milliseconds(1000))
      : burst_(burst), interval_(interval), left_(burst) {}

  // Log `text`, truncated to 500 bytes and printable (base/text.h).
  void info(absl::string_view text, const LogSubject& subject = {}) { write(LogLevel::kInfo, text, subject); }
  void warn(absl::string_view text, const LogSubject& subject = {}) { write(LogLevel::kWarning, text, subject); }

  using Clock = std::chrono::steady_clock;
  // Returns the number of lines dropped since the last written line, or -1 if this line must be dropped too.
  int64_t allow(Clock::time_point now = Clock::now());

 private:
  void write(LogLevel level, absl::string_view text, const LogSubject& subject);
  const int burst_;
  const std::chrono::milliseconds interval_;
  Mutex mutex_;
  int left_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point refilled_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt::server
