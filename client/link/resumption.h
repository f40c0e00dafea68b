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
  using Clock = std::chrono::steady_clock;

  // `hello` is the request that opened the session, `reply` the answer. `transport` must outlive this object.
  Resumption(Transport& transport, v1::HelloRequest hello, const v1::HelloReply& reply);

  // Repeats the handshake and opens a new stream. Retries until the session's lease has passed if nothing answers
  // (DEADLINE_EXCEEDED: the network is interrupted), and until 700 ms after that if the connection is refused or breaks
  // (UNAVAILABLE): long enough for an unstable connection, and short enough that callers get an error for a dead engine
  // within a second. Does not try again after 20 successive streams that broke within 700 ms without a reply; streams
  // that last longer may break any number of times, because a frame may take any time. Returns the last failure, or
  // `why` if there was none; NOT_FOUND if the engine has lost the session. Blocks. One thread at a time. `round_trip`
  // receives the duration of the successful handshake.
  absl::Status run(const absl::Status& why, Clock::duration* round_trip);
  // Call when a reply has arrived. Any thread may call it.
  void reply_arrived() { replied_.store(true, std::memory_order_relaxed); }

 private:
  Transport& transport_;
  v1::HelloRequest hello_;
  std::atomic<bool> replied_{true};
  const std::chrono::duration<double> lease_;
  Clock::time_point opened_;  // the stream
  int short_streams_ = 0;     // successive streams that broke soon, without a reply
};

}  // namespace tt::client
