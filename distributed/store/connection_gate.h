// ConnectionGate: the listening socket of a server between engines, with limits on connections that present no token.
//
// Implemented by the daemon (server/rpc/peer_gate.h), whose own port has the same limits.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tt::distributed {

// Thread-safe. The destructor closes the socket, after gRPC's server has ended.
class ConnectionGate {
 public:
  using Sink = grpc::experimental::ExternalConnectionAcceptor;

  virtual ~ConnectionGate() = default;
  virtual int port() const = 0;
  // Passes connections to `sink` from now on, until stop().
  virtual void start(std::unique_ptr<Sink> sink) = 0;
  virtual void stop() = 0;
  // Report a call of `peer` (gRPC's format) with the server's token, and one without.
  virtual void authenticated(const std::string& peer) = 0;
  virtual void refused(const std::string& peer) = 0;
};

// Listens on "host:port", for connections with or without TLS. UNAVAILABLE if the address cannot be bound.
using OpenGate = std::function<absl::StatusOr<std::unique_ptr<ConnectionGate>>(const std::string& address, bool tls)>;

}  // namespace tt::distributed
