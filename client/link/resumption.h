// Resumption: reaches the session again after its stream broke.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client/transport/transport.h"
#include "proto/wire.h"

namespace tt::client {

class Resumption {
 public:
  // `hello` opened the session with `session_key`. `transport` outlives this.
  Resumption(Transport& transport, v1::HelloRequest hello, std::string session_key);

  // Repeats the handshake and opens a new stream. While the engine cannot be reached it tries again, for 700 ms since
  // the first attempt after the last reply: long enough for an unstable connection, and short enough that callers learn
  // of a dead engine within a second. Returns the last failure, `why` if there was none; NOT_FOUND if the engine has
  // lost the session. Blocks; one thread at a time.
  absl::Status run(const absl::Status& why);
  // A reply has arrived: the next failure starts a new series of attempts. From any thread.
  void reply_arrived() { replied_.store(true, std::memory_order_relaxed); }

 private:
  Transport& transport_;
  v1::HelloRequest hello_;
  std::atomic<bool> replied_{true};
  std::chrono::steady_clock::time_point since_;
};

}  // namespace tt::client
