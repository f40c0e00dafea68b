// InheritedSocket: a listening socket that the process which started the daemon opened for it: systemd, for a service
// with a socket unit, or another program that follows the protocol of sd_listen_fds(3).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"
#include "server/rpc/address.h"

namespace tt::server {

struct InheritedSocket {
  FileDescriptor fd;  // does not block, closed on exec
  Address address;    // the socket's actual address
  // Whether the daemon removes a unix socket's file at its end: the process that it replaces had opened the socket.
  bool is_own = false;
};

// Takes one descriptor. Fails as take_inherited_sockets() does; `name` is for the message.
absl::StatusOr<InheritedSocket> take_socket(int fd, absl::string_view name);

// Takes the sockets that LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES announce, and removes these variables, so that no
// child of this process uses them. Returns none if LISTEN_PID does not name this process. Fails, with a one-line
// message, unless each descriptor is a listening stream socket of TCP or of a path whose folders only this user and
// root can change (socket_folder.h). Call once, before the process opens descriptors or starts threads.
absl::StatusOr<std::vector<InheritedSocket>> take_inherited_sockets();

}  // namespace tt::server
