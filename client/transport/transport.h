// Transport: carries frames, replies and bulk bytes. gRPC over TCP or a unix socket in
// production; a direct call into a server::Session in the conformance tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/schema/device.h"
#include "proto/wire.h"

namespace tt::client {

// How far a transfer has come, for a call that continues one that broke off. Its caller keeps it from call to call.
struct TransferProgress {
  int failures = 0;    // calls that broke off
  uint64_t bytes = 0;  // that the receiver is known to have
  uint64_t state = 0;  // of a download: the engine's name for the tensor's bytes, of which those are the first
};

// Calls without a patience throw Interrupted where the calling thread is interrupted
// (client/connection/interruption.h); what they had begun has ended by then.
class Transport {
 public:
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

  virtual ~Transport() = default;
  virtual absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) = 0;
  // Opens (or, after a failure, opens again) the session stream.
  virtual absl::Status open(const std::string& session_key) = 0;
  // Blocks for flow control only, `patience` at most: empty where nothing was sent by then. One thread at a time.
  virtual std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds patience) = 0;
  // Blocks for the next reply, `patience` at most: empty where none has come, and a later call receives it. One thread
  // at a time; may run beside send.
  virtual std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds patience) = 0;
  // The bytes of `transfer`, for a tensor on `device`; returns when the engine has them all. Fails with ABORTED where
  // the engine has no room for the transfer now, with RESOURCE_EXHAUSTED where its memory has none. After a failure it
  // is called again with the same `progress`.
  virtual absl::Status upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                              TransferProgress* progress) = 0;
  // Waits for `after` to have been executed; fills `into`, which has room for exactly the
  // tensor's bytes. A poisoned tensor is not a Status: it is in `error`. Fails and goes on as upload does.
  virtual absl::Status download(uint64_t handle, uint64_t after, absl::Span<char> into, TransferProgress* progress,
                                v1::Error* error) = 0;
  // Cancels the session's frames up to `through`; returns the last one that had been executed. Returns within a second.
  // From any thread.
  virtual absl::StatusOr<uint64_t> cancel(uint64_t through) = 0;
  // Ends everything; blocked calls return. Idempotent, from any thread.
  virtual void shutdown() = 0;
  // What it reaches, for messages: "localhost:7070".
  virtual std::string address() const { return "this process"; }
};

}  // namespace tt::client
