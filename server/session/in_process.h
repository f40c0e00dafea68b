// InProcessEngine: an engine without gRPC, for a transport that calls it directly.
//
// Offers the calls of the gRPC services as functions. Frames and replies are the wire's messages, so everything except
// transport is as in production. Thread-safe like Sessions and Session.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/session/sessions.h"

namespace tt::server {

class InProcessEngine {
 public:
  // Requires that register_backends() has been called.
  explicit InProcessEngine(const Sessions::Options& options = {}) : sessions_(options) {}

  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply);
  // Executes one frame as a stream would. A fault is reported in the reply and ends the session.
  absl::Status execute(absl::string_view session_key, const v1::Frame& frame, v1::Reply* reply);
  // Calls Session::cancel.
  absl::Status cancel(absl::string_view session_key, uint64_t through, uint64_t* executed);
  absl::Status upload(absl::string_view session_key, uint64_t transfer, Device device, absl::Span<const char> bytes);
  // `into` must have exactly the tensor's size. A poisoned tensor is reported in `error`.
  absl::Status download(absl::string_view session_key, uint64_t handle, uint64_t after, absl::Span<char> into,
                        v1::Error* error);
  Sessions& sessions() { return sessions_; }

 private:
  Sessions sessions_;
};

}  // namespace tt::server
