#include "client/connection/channel.h"

#include <grpcpp/create_channel_posix.h>
#include <unistd.h>

#include "client/connection/peer.h"
#include "proto/credentials.h"
#include "proto/keepalive.h"

namespace tt::client {
namespace {

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // sessions do not share a connection or its failures
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);          // engines are reached directly
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);             // Link resends frames itself
  // If the host fails or becomes unreachable, the connection ends within seconds. gRPC also sets TCP_USER_TIMEOUT.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // the engine may compute for any time
  return arguments;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials_for(const Address& address) {
  if (!address.tls) return plain_channel_credentials();
  const Trust& trust = address.trust;
  return trust.fingerprint.empty() ? channel_credentials(trust.files)
                                   : pinned_credentials(trust.fingerprint, trust.files);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> open_channel(const Address& address) {
  grpc::ChannelArguments arguments = channel_arguments();
  if (address.socket.empty()) {
    auto credentials = credentials_for(address);
    if (!credentials.ok()) return credentials.status();
    return grpc::CreateCustomChannel(address.target, *credentials, arguments);
  }
  absl::StatusOr<int> socket = connect_unix(address.socket);
  if (!socket.ok()) return socket.status();
  if (absl::Status status = check_peer(*socket, address.text); !status.ok()) {
    close(*socket);
    return status;
  }
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");  // the authority that gRPC uses for unix sockets
  return grpc::CreateCustomInsecureChannelFromFd(address.target, *socket, arguments);
}

}  // namespace tt::client
