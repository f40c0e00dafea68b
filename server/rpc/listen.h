// Listening sockets of the engine, for gRPC's connections and for HTTP's. All functions are thread-safe.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/rpc/address.h"

namespace tt::server {

// Listens on a unix socket, for which claim() has succeeded. Appends the non-blocking socket to `sockets`; the caller
// closes it. FAILED_PRECONDITION with a one-line message if it cannot listen.
absl::Status listen_unix(const Address& address, std::vector<int>* sockets);
// The same for TCP, with one socket per address of the host name; the wildcard address gets one socket for IPv4 and
// IPv6 together. Replaces port 0 by the actual port. Sockets may have been appended before an error.
absl::Status listen_tcp(Address* address, std::vector<int>* sockets);

// Returns the name of an accepted connection's peer in gRPC's format: "ipv4:10.1.2.3:4711", "ipv6:[::1]:4711", "unix:".
std::string peer_of(const sockaddr_storage& name);

}  // namespace tt::server
