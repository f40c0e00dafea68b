// SessionStream: the Session call on the wire. One thread writes while another reads, and either may leave its wait: a
// read that was begun stays under way for the next reader.
//
// Both directions complete on one queue. Whoever waits polls it for both, so that a caller that sends and receives by
// itself needs no other thread; where two wait, one polls and wakes the other.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "proto/wire.h"
#include "teletensor/v1/engine.grpc.pb.h"

namespace tt::client {

class SessionStream {
 public:
  // Opens the stream. `context` outlives it.
  SessionStream(v1::Engine::Stub& stub, grpc::ClientContext& context);
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;

  // As Transport's. The frame has been copied on return: its bytes may still be on their way, and the next send waits
  // for that. So a stream that broke is found by the next send, or by the reader.
  std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds timeout);
  std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds timeout);
  // Ends the call: calls that wait return UNAVAILABLE, even where the engine does not read. From any thread.
  void abort();
  // Ends the call, once nobody sends or receives any more; false where gRPC holds on to it for longer than a moment.
  // See CallPointer.
  bool drain();

 private:
  enum Event : intptr_t { kWritten, kRead, kFinished, kAborted, kEvents };
  static void* tag(Event event) { return reinterpret_cast<void*>(event); }
  // Whether `event` has happened, or the call was aborted, by `deadline`.
  bool await(Event event, gpr_timespec deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::ClientContext& context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::Frame, v1::Reply>> call_;

  Mutex mutex_;
  CondVar changed_;
  bool under_way_[kEvents] ABSL_GUARDED_BY(mutex_) = {};
  bool ok_[kEvents] ABSL_GUARDED_BY(mutex_) = {};
  bool polling_ ABSL_GUARDED_BY(mutex_) = false;     // a thread is in the queue
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;          // threads that wait for it to come back
  bool read_begun_ ABSL_GUARDED_BY(mutex_) = false;  // and not received yet
  v1::Reply incoming_;   // of the read under way; gRPC's until it has happened, then the reader's
  grpc::Status status_;  // likewise, of the end
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);  // wakes the poller for that
};

}  // namespace tt::client
