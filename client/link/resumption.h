// Resumption: reopens the session's stream after it broke.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/transport/transport.h"
#include "proto/wire.h"

namespace tt::client {

class Resumption {
 public:
  using Clock = std::chrono::steady_clock;

  // `hello` is the request that opened the session, `reply` the answer. `transport` must outlive this object.
  Resumption(Transport& transport, v1::HelloRequest hello, const v1::HelloReply& reply);

  // Repeats the handshake and opens a new stream. Retries after any failure until the session's lease has passed,
  // except if the session is known to be gone: the engine refuses to resume it or does not know its token, or the
  // engine's process on this host has ended. If the engine itself ended the last stream (`why` is CANCELLED or
  // NOT_FOUND: it ends the session), retries for 700 ms only.
  //
  // Streams may break without a reply, because a frame may take any time. Gives up when, since the last reply, more
  // than 1000 streams broke; or when the lease has passed and more than 5 streams broke that lasted less than 5.5 s on
  // average, so that they are not known to have worked (proto/keepalive.h).
  //
  // Returns the last failure, or `why` if there was none; NOT_FOUND if the engine has lost the session, CANCELLED after
  // stop(). Blocks. One thread at a time. `round_trip` receives the duration of the successful handshake.
  // `executed` receives the last frame that the engine has executed.
  absl::Status run(const absl::Status& why, Clock::duration* round_trip, uint64_t* executed);
  // The session continues after the engine has ended and started again: run() retries for this long, also after its
  // process has ended or it has ended the stream. 0: it does not. Any thread may call it.
  void set_patience(std::chrono::duration<double> patience) { patience_.store(patience.count()); }
  // Call when a reply has arrived. Any thread may call it.
  void reply_arrived() { replied_.store(true, std::memory_order_relaxed); }
  // Ends the pauses of run(), now and later. The transport must be shut down too. Any thread may call it.
  void stop();

 private:
  // Whether so many streams broke without a reply that another one is futile.
  bool is_futile(Clock::time_point now) const;
  // Returns false after stop().
  bool pause(std::chrono::milliseconds duration);

  Transport& transport_;
  v1::HelloRequest hello_;
  std::atomic<bool> replied_{true};
  std::atomic<double> patience_{0};  // seconds
  const std::chrono::duration<double> lease_;
  int streams_ = 0;                // successive streams that broke without a reply
  Clock::time_point first_broke_;  // the stream before them
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tt::client
