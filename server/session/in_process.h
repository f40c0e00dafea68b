// InProcessEngine: an engine without a wire, for a transport that calls it directly.
//
// What gRPC's services do, as plain calls: frames and replies are the wire's messages, so everything but the bytes'
// way is as in production. Thread-safe as Sessions and Session are.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/session/sessions.h"

namespace tt::server {

class InProcessEngine {
 public:
  // Requires register_backends.
  explicit InProcessEngine(const Sessions::Options& options = {}) : sessions_(options) {}

  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply);
  // What a stream does with one frame. A fault is in the reply, and ends the session.
  absl::Status execute(absl::string_view session_key, const v1::Frame& frame, v1::Reply* reply);
  // Session::cancel.
  absl::Status cancel(absl::string_view session_key, uint64_t through, uint64_t* executed);
  absl::Status upload(absl::string_view session_key, uint64_t transfer, Device device, absl::Span<const char> bytes);
  // `into` takes exactly the tensor's bytes. A poisoned tensor is in `error`.
  absl::Status download(absl::string_view session_key, uint64_t handle, uint64_t after, absl::Span<char> into,
                        v1::Error* error);
  Sessions& sessions() { return sessions_; }

 private:
  Sessions sessions_;
};

}  // namespace tt::server
