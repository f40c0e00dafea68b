// TransferRetry: decides whether a broken upload or download is continued.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "client/connection/interruption.h"
#include "client/transport/transport.h"

namespace tt::client {

// State of one transfer, owned by its caller.
class TransferRetry {
 public:
  // `name` is "upload" or "download".
  TransferRetry(const char* name, size_t bytes) : name_(name), bytes_(bytes) {}

  TransferProgress progress;  // total over all calls
  InterruptTimer timer;       // shared by all calls, because a single call may be too short to check it

  enum class Cause {
    kNoRoom,  // the engine has no room for the transfer until another one ends
    kFailed,  // the call broke
  };
  // Records a call's failure. Throws Error (kOutOfMemory) if the engine's memory is exhausted.
  Cause record(const absl::Status& status);
  // Throws Error unless another call may succeed: kConnection after 30 s without progress and if the session has
  // ended, kRuntime for a failure with another cause than the connection.
  void throw_if_final(const absl::Status& status) const;
  // Does not count the time since record() as time without progress.
  void ignore_time_since_failure();
  // Returns the time to wait before the next call, which grows with the number of calls without progress.
  std::chrono::milliseconds next_pause();

 private:
  using Clock = std::chrono::steady_clock;

  const char* name_;
  size_t bytes_;
  Clock::time_point last_progress_ = Clock::now();  // or the first failure
  Clock::time_point failed_at_;
  uint64_t bytes_then_ = 0;
  int calls_since_ = 0;
};

}  // namespace tt::client
