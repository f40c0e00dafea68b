// open_channel: a gRPC channel to an engine.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/status/statusor.h"
#include "client/connection/address.h"

namespace tt::client {

// Opens a new, unshared connection. A unix socket is connected here, and its listener must run as a trusted user
// (client/connection/peer.h); nothing is sent to other users' listeners. Returns UNAVAILABLE if nothing listens at a
// unix socket's path, FAILED_PRECONDITION if a file for TLS cannot be used.
absl::StatusOr<std::shared_ptr<grpc::Channel>> open_channel(const Address& address);

}  // namespace tt::client
