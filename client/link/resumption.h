// Resumption: reopens the session's stream after it broke.
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
  // `hello` is the request that opened the session, `reply` the answer. `transport` must outlive this object.
  Resumption(Transport& transport, v1::HelloRequest hello, const v1::HelloReply& reply);

  // Repeats the handshake and opens a new stream. Retries until the session's lease has passed since the first attempt
  // if nothing answers (DEADLINE_EXCEEDED: the network is interrupted), and until 700 ms after that, or after one of
  // the first 20 handshakes that succeed, if the connection is refused or breaks (UNAVAILABLE): long enough for an
  // unstable connection, and short enough that callers get an error for a dead engine within a second. Returns the last
  // failure, or `why` if there was none; NOT_FOUND if the engine has lost the session. Blocks. One thread at a time.
  // `round_trip` receives the duration of the successful handshake.
  absl::Status run(const absl::Status& why, std::chrono::steady_clock::duration* round_trip);
  // Call when a reply has arrived: the next failure then starts a new series of attempts. Any thread may call it.
  void reply_arrived() { replied_.store(true, std::memory_order_relaxed); }

 private:
  Transport& transport_;
  v1::HelloRequest hello_;
  std::atomic<bool> replied_{true};
  const std::chrono::duration<double> lease_;
  std::chrono::steady_clock::time_point begun_;          // start of the series of attempts
  std::chrono::steady_clock::time_point refused_since_;  // begin of the 700 ms
  int streams_ = 0;                                      // opened in this series
};

}  // namespace tt::client
