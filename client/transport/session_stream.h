// SessionStream: the Session call's stream. One thread may write while another reads. Either may stop waiting: a read
// in progress is then completed by the next reader.
//
// Both directions use one completion queue. A waiting thread polls it for both directions, so that a caller that sends
// and receives needs no other thread. If two threads wait, one polls and wakes the other.
//
// With pipes, frames and replies pass through the memory that the engine shares with this client instead: an answer
// then needs no system call. The gRPC stream stays open beside them; it is polled at intervals, and shows when the
// engine has ended the stream.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/transport/frame_encoder.h"
#include "client/transport/shared_memory.h"
#include "proto/wire.h"
#include "teletensor/v1/engine.grpc.pb.h"

namespace tt::client {

class SessionStream {
 public:
  // Opens the stream. `context` must outlive it. `pipes` may be null.
  SessionStream(v1::Engine::Stub& stub, grpc::ClientContext& context, const FrameEncoder::Options& encoding,
                std::unique_ptr<SharedMemory::Pipes> pipes);
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;

  // Like the functions of Transport. When send() returns, the frame has been copied but perhaps not sent; the next
  // send() waits until it has been sent. Therefore a broken stream is reported by the next send() or by receive().
  std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds timeout);
  std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds timeout);
  // Ends the call: waiting calls return UNAVAILABLE, even if the engine does not read. Any thread may call it.
  void abort();
  // Ends the call. Requires that no thread sends or receives. Returns false if gRPC still uses the call after a short
  // wait; see CallPointer.
  bool drain();
  // Whether the engine's positions in the pipes were invalid.
  bool has_broken_pipe() const { return pipe_is_broken_; }

 private:
  enum Event : intptr_t { kWritten, kRead, kFinished, kAborted, kEvents };
  static void* tag(Event event) { return reinterpret_cast<void*>(event); }
  // Waits until `event` has happened or the call was aborted, at most until `deadline`. Returns false at the deadline.
  bool await(Event event, gpr_timespec deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status end_of_stream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- With pipes
  std::optional<absl::Status> send_through_pipe(const v1::Frame& frame, std::chrono::milliseconds timeout);
  std::optional<absl::Status> receive_through_pipe(v1::Reply* reply, std::chrono::milliseconds timeout);
  // Whether the stream has ended. Looks at the gRPC stream at most every kPoll.
  bool has_ended();
  absl::Status break_pipe();
  // Reads the next reply into `bytes`. Returns kStopped if none has arrived within `timeout`.
  shared_ring::Outcome read_reply(std::string* bytes, std::chrono::milliseconds timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receiving_);
  // Reads the replies that have arrived, unless another thread does: an engine that cannot write a reply reads no
  // frames, and a thread that waits until it does would wait for ever.
  void read_ahead();

  grpc::ClientContext& context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::Frame, v1::Reply>> call_;
  FrameEncoder encoder_;  // used by the thread that sends

  Mutex mutex_;
  CondVar changed_;
  bool under_way_[kEvents] ABSL_GUARDED_BY(mutex_) = {};
  bool ok_[kEvents] ABSL_GUARDED_BY(mutex_) = {};
  bool polling_ ABSL_GUARDED_BY(mutex_) = false;     // a thread polls the queue
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;          // threads that wait for the poller
  bool read_begun_ ABSL_GUARDED_BY(mutex_) = false;  // a read was started and its reply not received yet
  v1::Reply incoming_;   // reply of the read in progress; owned by gRPC until the read completes, then by the reader
  grpc::Status status_;  // the call's final status; owned in the same way
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);  // wakes the poller on abort

  const std::unique_ptr<SharedMemory::Pipes> pipes_;  // the frames' end is used by the thread that sends
  std::string outgoing_bytes_;
  std::atomic<bool> awaits_answer_{false};  // a frame with reads was sent; a hint
  Mutex receiving_;  // guards the replies' end; acquired before mutex_
  std::string incoming_bytes_ ABSL_GUARDED_BY(receiving_);
  std::deque<std::string> read_ahead_ ABSL_GUARDED_BY(receiving_);  // replies that receive() returns next
  std::atomic<bool> pipe_is_broken_{false};
  std::atomic<bool> ended_{false};     // the gRPC stream has ended, or was aborted
  std::atomic<int64_t> next_poll_{0};  // when to look at the gRPC stream again, in ticks of the steady clock
};

}  // namespace tt::client
