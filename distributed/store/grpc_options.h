// Options of the gRPC servers and channels between engines, and the check of a server's token. Used by the store and by
// the pull server, which serve a private port each.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "distributed/store/connection_gate.h"

namespace tt::distributed {

// The port of a server between engines. Use: open(), BuildAndStart(), start(); stop() before the server's
// shutdown.
class ServerPort {
 public:
  // Makes the server listen on `address` ("host:port", port 0 selects a free one), and sets its options. `service`
  // names the quota of gRPC's buffers. Without `open_gate`, gRPC listens itself, with no limit on connections.
  absl::Status open(grpc::ServerBuilder* builder, const std::string& address, const std::string& service,
                    const OpenGate& open_gate);
  // Serves connections from now on. Returns false if the address could not be bound.
  bool start();
  void stop();
  int number() const { return number_; }

  // Returns the status of the token's check, and reports it for the connection's limits.
  absl::Status checked(const grpc::GenericCallbackServerContext& context, absl::Status status) const;

 private:
  std::unique_ptr<ConnectionGate> gate_;  // null: gRPC listens
  std::unique_ptr<ConnectionGate::Sink> sink_;
  int number_ = 0;
};
// For a server that may start later, and for calls that wait for any time. Calls are not retried.
grpc::ChannelArguments channel_arguments();
// The target of "host:port".
std::string channel_target(const std::string& address);

// Checks that a call's metadata has `authorization: Bearer <token>`, in constant time. Thread-safe.
class RequiredToken {
 public:
  // `service` precedes the messages: "[store] ...".
  RequiredToken(absl::string_view service, absl::string_view token);
  // UNAUTHENTICATED without the token.
  absl::Status check(const grpc::GenericCallbackServerContext& context) const;

 private:
  const std::string service_;
  const std::string authorization_;
};

// Ends a call before its request is read.
class RefusedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace tt::distributed
