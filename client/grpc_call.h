// GrpcTransport::Call: a call under way, known to its transport so that shutdown() ends it.
#pragma once

#include <mutex>
#include <string>

#include "client/grpc_transport.h"

namespace tt::client {

inline absl::Status to_status(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

class GrpcTransport::Call {
 public:
  // `session_key` is empty for Hello.
  Call(GrpcTransport& transport, const std::string& session_key) : transport_(transport) {
    if (!session_key.empty()) context.AddMetadata("teletensor-session", session_key);
    std::lock_guard lock(transport_.mutex_);
    transport_.calls_.insert(&context);
    if (transport_.shut_down_) context.TryCancel();
  }
  ~Call() {
    std::lock_guard lock(transport_.mutex_);
    transport_.calls_.erase(&context);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  grpc::ClientContext context;

 private:
  GrpcTransport& transport_;
};

}  // namespace tt::client
