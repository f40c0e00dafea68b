// Options of the gRPC servers and channels between engines, and the check of a server's token. Used by the store and by
// the pull server, which serve a private port each.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tt::distributed {

// Makes the server listen on `address` ("host:port", port 0 selects a free one) without TLS. `*port` receives the port
// when the server starts, or 0 if it cannot. `service` names the quota of gRPC's buffers.
void set_server_options(grpc::ServerBuilder* builder, const std::string& address, const std::string& service,
                        int* port);
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
