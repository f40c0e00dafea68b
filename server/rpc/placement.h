// Placement: where an engine opens the sessions of its principals, if not in its own process: in worker processes, or
// in other engines.
//
// Implemented by server/workers. Owned by the daemon; thread-safe. Calls may wait for a worker to start.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/wire.h"
#include "server/session/principal.h"

namespace tt::server {

class Placement {
 public:
  virtual ~Placement() = default;
  // Whether the places have other addresses than this engine, to which the client must be able to follow.
  virtual bool is_remote() const { return false; }
  // Describes in `reply` where the principal may open one session, and sets its number if it is known. `by_socket`: the
  // caller is connected by a unix socket. UNAVAILABLE if there is no place now.
  virtual absl::Status place(const Principal& principal, bool by_socket, v1::HelloReply* reply) = 0;
  // Describes in `reply` where the worker that place() chose is, if it still runs and serves this principal. NOT_FOUND
  // with the reason if its sessions are lost.
  virtual absl::Status locate(const Principal& principal, uint64_t worker, bool by_socket, v1::HelloReply* reply) = 0;
  // Ends all sessions of a principal and withdraws what place() has granted. Returns the number of sessions.
  virtual size_t revoke(absl::string_view principal) = 0;
};

}  // namespace tt::server
