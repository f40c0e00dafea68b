// Listener: serves the engine's services on its addresses.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/admin/admin_service.h"
#include "server/admin/status.h"
#include "server/audit.h"
#include "server/rpc/address.h"
#include "server/rpc/auth.h"
#include "server/rpc/engine_service.h"
#include "server/rpc/inherited_sockets.h"
#include "server/serving/inference_server.h"
#include "server/serving/publish_model.h"
#include "server/session/sessions.h"
#include "server/trace/tracer.h"
#include "server/workers/workers.h"

namespace tt::server {

class Listener {
 public:
  struct Options {
    std::vector<Address> addresses;
    std::vector<InheritedSocket> inherited;        // served besides `addresses`
    std::shared_ptr<grpc::ServerCredentials> tls;  // of TCP connections; null: without TLS
    bool open_reflection = false;                  // gRPC's reflection service requires no token
    size_t connections_per_address = 256;
    size_t message_bytes = 0;  // that requests and replies may have at least; 0: what sessions need
    bool paused = false;       // no connection is accepted before resume()
  };

  // What the services use. All references and pointers must outlive the Listener.
  struct Parts {
    const Auth& auth;
    AuditLog& audit;
    Sessions& sessions;
    const EngineStatus& status;
    std::shared_ptr<Tracer> tracer = nullptr;  // receives spans of administrative calls; null: there are none
    Workers* workers = nullptr;                // serve the sessions; null: this process does
    Placement* placement = nullptr;            // where sessions are opened; null: in this process
    Admissions* admissions = nullptr;          // keys of sessions; null: this process has none
    std::string placed_by{};                   // the principal of an engine that places sessions here; empty: none
    InferenceServer* inference = nullptr;      // answers inference requests; null: there are no models
    ModelPublisher* publisher = nullptr;       // takes models from sessions; null: there are no models
    AdminService::Replace upgrade = {};        // replaces the process; empty: it cannot be replaced
  };

  // Starts listening. The message of an error status is one line. Admin.Drain calls `exit`.
  static absl::StatusOr<std::unique_ptr<Listener>> start(Options options, const Parts& parts,
                                                         std::function<void()> exit);
  ~Listener();

  // Addresses on which the Listener listens. Port 0 has been replaced by the actual port.
  const std::vector<Address>& addresses() const { return addresses_; }
  // While paused, clients' connections wait in the kernel's queues, which another process may serve.
  void pause();
  void resume();
  struct Socket {
    int fd;       // valid until shut_down()
    bool is_own;  // remove_sockets() removes its file, if it has one
  };
  std::vector<Socket> sockets() const;
  // For a process whose sockets and sessions another one has taken over: ends the sessions' streams, and returns when
  // the inference calls that have arrived are answered, or after `timeout`. Connections are closed as HTTP/2 allows it:
  // clients send further calls to the other process. A call that arrives before its client knows ends with CANCELLED,
  // because gRPC stops to match calls when it announces the end. The process must exit afterwards.
  void finish_inference(std::chrono::milliseconds timeout);
  // Stops accepting connections, waits up to `timeout` for running frames, cancels the remaining frames, frees all
  // sessions, and ends every call. Returns when all of this is complete. Library calls in a frame are not interrupted.
  void shut_down(std::chrono::milliseconds timeout = {});
  // Removes the socket files, except those of inherited sockets, for a process that exits without completing
  // shut_down(). Any thread may call it.
  void remove_sockets() const;

 private:
  struct Impl;
  Listener(std::unique_ptr<Impl> impl, std::vector<Address> addresses, std::vector<bool> are_own,
           std::vector<std::string> own_paths);
  std::unique_ptr<Impl> impl_;
  std::vector<Address> addresses_;      // first those that the Listener opened, then those of inherited sockets
  std::vector<bool> are_own_;           // the sockets
  std::vector<std::string> own_paths_;  // socket files to remove
};

}  // namespace tt::server
