// log: the daemon's log on standard error, including messages of gRPC and protobuf.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace tt::server {

// `level` is one of spdlog's names. Call once, at start.
void start_log(const std::string& level);

// Limits the rate of log lines that clients can cause at one place in the code: a burst of lines, then one line per
// `interval`. The first line after a gap reports how many lines were dropped. Thread-safe.
class LogLimit {
 public:
  explicit LogLimit(int burst = 20, std::chrono::milliseconds interval = std::chrono::milliseconds(1000))
      : burst_(burst), interval_(interval), left_(burst) {}

  // Log `text`, truncated to 500 bytes, with control characters replaced by spaces.
  void info(absl::string_view text) { write(false, text); }
  void warn(absl::string_view text) { write(true, text); }

 private:
  using Clock = std::chrono::steady_clock;
  void write(bool warning, absl::string_view text);
  // Returns the number of lines dropped since the last written line, or -1 if this line must be dropped too.
  int64_t allow(Clock::time_point now);

  const int burst_;
  const std::chrono::milliseconds interval_;
  Mutex mutex_;
  int left_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point refilled_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt::server
