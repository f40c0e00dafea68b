// open_channel: a gRPC channel to an engine.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/status/statusor.h"
#include "client/connection/address.h"

namespace tt::client {

// A new connection, shared with nobody. A unix socket is connected here, and its listener has to be of a trusted user
// (client/connection/peer.h): nothing has been sent to another one. UNAVAILABLE where nobody listens there.
absl::StatusOr<std::shared_ptr<grpc::Channel>> open_channel(const Address& address);

}  // namespace tt::client
