// The daemon's limits on connections, for the ports that its sessions open for other engines.
#pragma once

#include "distributed/store/connection_gate.h"

namespace tt::server {

// See distributed::OpenGate. At most 4,096 connections from one address, and those of Acceptor without a token.
absl::StatusOr<std::unique_ptr<distributed::ConnectionGate>> open_peer_gate(const std::string& address, bool tls);

}  // namespace tt::server
