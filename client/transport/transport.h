// Transport: carries frames, replies and bulk bytes. gRPC over TCP or a unix socket in production; direct calls into a
// server::Session in the conformance tests.
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

// Progress of a transfer, with which a call resumes a failed transfer. The caller keeps it between calls.
struct TransferProgress {
  int failures = 0;          // number of failed calls
  bool was_refused = false;  // whether the engine refused a call because it had no room
  uint64_t bytes = 0;        // bytes that the receiver has confirmed
  std::string digest;        // upload only: SHA-256 of its bytes, if the engine is offered one
  uint64_t state = 0;        // download only: the engine's identifier of the bytes being read
};

// Bulk bytes sent and received through gRPC since the start. Bytes in shared memory are not counted.
struct TransferCounters {
  uint64_t upload_bytes = 0;               // of tensors
  uint64_t upload_compressed_bytes = 0;    // sent for them
  uint64_t upload_reused_bytes = 0;        // of tensors, not sent because the engine had the same bytes
  uint64_t download_bytes = 0;             // of tensors
  uint64_t download_compressed_bytes = 0;  // received for them
  double upload_rate = 0;                  // of the link, in bytes per second; 0: unknown
  double download_rate = 0;
};

// Limits of uploads in the background (UploadQueue).
struct BackgroundUploads {
  size_t max_bytes = 0;  // maximum total size of all background uploads
  int max_calls = 0;     // maximum number of concurrent calls; 0: no background uploads
  size_t min_sending = size_t{32} << 20;  // total size that may be in progress whatever the link transports
};

// Functions without a `timeout` parameter throw Interrupted if the calling thread is interrupted
// (client/connection/interruption.h); their work has ended when they throw.
class Transport {
 public:
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

  virtual ~Transport() = default;
  // Opens or resumes a session. Fails with NOT_FOUND, UNAUTHENTICATED or PERMISSION_DENIED if the engine refuses, with
  // another code if it does not answer.
  virtual absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) = 0;
  // Whether the process that answered the last hello() is known to have ended. Its sessions are gone, unless another
  // process has replaced it, which then answers the next hello(). Any thread may call it.
  virtual bool engine_has_ended() const { return false; }
  // Opens the session stream, or reopens it after a failure.
  virtual absl::Status open(const std::string& session_key) = 0;
  // Sends a frame. Blocks for flow control only, for at most `timeout`. Returns nothing if nothing was sent by then.
  // One thread at a time.
  virtual std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds timeout) = 0;
  // Waits for the next reply, for at most `timeout`. Returns nothing if none has arrived; a later call receives it. One
  // thread at a time; may run concurrently with send.
  virtual std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds timeout) = 0;
  // Uploads the bytes of `transfer`, for a tensor on `device`. Returns when the engine has received all of them. Fails
  // with ABORTED if the engine has no room for the transfer now, with RESOURCE_EXHAUSTED if the engine's memory is
  // exhausted. After a failure the caller retries with the same `progress`.
  virtual absl::Status upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                              TransferProgress* progress) = 0;
  // Waits until frame `after` has been executed, then fills `into`, whose size must equal the tensor's bytes. A
  // poisoned tensor is reported in `error`, not in the Status. Fails and resumes like upload.
  virtual absl::Status download(uint64_t handle, uint64_t after, absl::Span<char> into, TransferProgress* progress,
                                v1::Error* error) = 0;
  // Cancels the session's frames up to `through`. Returns the sequence of the last executed frame, or fails, within a
  // second. Any thread may call it.
  virtual absl::StatusOr<uint64_t> cancel(uint64_t through) = 0;
  // Stores images of the session on the engine's disk. Returns when the first one is complete, or fails, at most within
  // two minutes. Any thread may call it.
  virtual absl::Status persist(const v1::PersistRequest& /*request*/, v1::PersistReply* /*reply*/) {
    return absl::UnimplementedError("this engine stores no sessions");
  }
  // Ends all calls; blocked calls return. Idempotent. Any thread may call it.
  virtual void shutdown() = 0;
  // Call after hello().
  virtual BackgroundUploads background_uploads() const { return {}; }
  // Any thread may call it.
  virtual TransferCounters transfer_counters() const { return {}; }
  // Returns the engine's address for messages, such as "localhost:7070".
  virtual std::string address() const { return "this process"; }
};

}  // namespace tt::client
