// Transport: carries frames, replies and bulk bytes. gRPC over TCP or a unix socket in
// production; a direct call into a server::Session in the conformance tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/rules/device.h"
#include "proto/wire.h"

namespace tt::client {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) = 0;
  // Opens (or, after a failure, opens again) the session stream.
  virtual absl::Status open(const std::string& session_key) = 0;
  // Blocks for flow control only. One thread at a time.
  virtual absl::Status send(const v1::Frame& frame) = 0;
  // Blocks for the next reply. One thread at a time; may run beside send.
  virtual absl::Status receive(v1::Reply* reply) = 0;
  // The bytes of `transfer`, for a tensor on `device`; returns when the engine has them all.
  virtual absl::Status upload(uint64_t transfer, Device device, absl::Span<const char> bytes) = 0;
  // Waits for `after` to have been executed; fills `into`, which has room for exactly the
  // tensor's bytes. A poisoned tensor is not a Status: it is in `error`.
  virtual absl::Status download(uint64_t handle, uint64_t after, absl::Span<char> into, v1::Error* error) = 0;
  // Ends everything; blocked calls return. Idempotent, from any thread.
  virtual void shutdown() = 0;
  // What it reaches, for messages: "localhost:7070".
  virtual std::string address() const { return "this process"; }
};

}  // namespace tt::client
