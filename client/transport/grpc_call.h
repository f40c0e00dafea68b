// GrpcTransport::Call: a call in progress, registered with its transport so that shutdown() cancels it.
#pragma once

#include <string>

#include "base/mutex.h"
#include "client/connection/metadata.h"
#include "client/transport/grpc_transport.h"

namespace tt::client {

inline absl::Status to_status(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// Converts the status of a transfer's call that has ended. ABORTED if the call may be retried once other calls have
// ended: the engine's metadata says so, or gRPC had no thread for the call.
inline absl::Status transfer_status(const grpc::Status& status, const grpc::ClientContext& context) {
  const bool can_retry = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
                         (context.GetServerTrailingMetadata().count("teletensor-retry") != 0 ||
                          status.error_message() == "Server Threadpool Exhausted");
  return can_retry ? absl::AbortedError(status.error_message()) : to_status(status);
}

class GrpcTransport::Call {
 public:
  // `session_key` is empty for Hello.
  Call(GrpcTransport& transport, const std::string& session_key) : transport_(transport) {
    if (!session_key.empty()) add_metadata(context, "teletensor-session", session_key);
    MutexLock lock(transport_.mutex_);
    transport_.calls_.insert(&context);
    if (transport_.shut_down_) context.TryCancel();
  }
  ~Call() {
    MutexLock lock(transport_.mutex_);
    transport_.calls_.erase(&context);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  grpc::ClientContext context;

 private:
  GrpcTransport& transport_;
};

}  // namespace tt::client
