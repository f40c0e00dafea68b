// listening_sockets: opens the sockets of the engine's addresses, for gRPC's connections and for HTTP's. All functions
// are thread-safe.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "server/rpc/address.h"

namespace tt::server {

struct ListeningSocket {
  FileDescriptor fd;  // does not block, closed on exec
  bool is_unix = false;
};

// Binds and listens on every address, replacing port 0 in `addresses` by the actual port. On failure no socket and no
// socket file remains; the message of the status is one line.
absl::StatusOr<std::vector<ListeningSocket>> open_listening_sockets(std::vector<Address>* addresses);

// Sets options of a TCP socket that the connections accepted from it inherit.
void set_tcp_options(int fd);

// Returns the name of an accepted connection's peer in gRPC's format: "ipv4:10.1.2.3:4711", "ipv6:[::1]:4711", "unix:".
std::string peer_of(const sockaddr_storage& name);

}  // namespace tt::server
