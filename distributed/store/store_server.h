// StoreServer: serves a MemoryStore on a TCP port (proto/teletensor/v1/store.proto).
//
// Uses gRPC's callback API, so that a waiting call or a membership holds no thread. A call's token is checked before
// its request is read. A client that closes its connection, or whose process ends, leaves its groups at once; a client
// that falls silent leaves them within about 6 s (proto/keepalive.h). Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "distributed/store/connection_gate.h"
#include "distributed/store/memory_store.h"

namespace tt::distributed {

class StoreServer {
 public:
  // Listens on "host:port"; port 0 selects a free port. Clients must present `token`.
  // INVALID_ARGUMENT for a malformed address or token, UNAVAILABLE if the address cannot be bound.
  // The store's bytes are charged with `charge`. `open_gate` limits connections; without it they are not limited.
  static absl::StatusOr<std::unique_ptr<StoreServer>> start(const std::string& address, const std::string& token,
                                                            MemoryStore::Charge charge = {},
                                                            const OpenGate& open_gate = {});
  // Ends all calls with UNAVAILABLE and closes the port. Waits for running callbacks, but not for clients.
  ~StoreServer();

  int port() const;
  // The store, for use in this process.
  MemoryStore& store();

 private:
  class Impl;
  explicit StoreServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::distributed
