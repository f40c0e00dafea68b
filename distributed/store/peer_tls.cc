#include "distributed/store/peer_tls.h"

#include <utility>

#include "proto/credentials.h"

namespace tt::distributed {
namespace {

struct Credentials {
  std::shared_ptr<grpc::ServerCredentials> server;
  std::shared_ptr<grpc::ChannelCredentials> channel;
};

// Null: without TLS. Never deleted, because gRPC's threads may outlive main().
const Credentials* tls = nullptr;

}  // namespace

absl::Status use_peer_tls(const TlsFiles& files, CheckedTlsFiles::Report report) {
  auto server = server_credentials(files, std::move(report));
  if (!server.ok()) return server.status();
  auto channel = tt::peer_channel_credentials(files);
  if (!channel.ok()) return channel.status();
  tls = new Credentials{*std::move(server), *std::move(channel)};
  return absl::OkStatus();
}

bool peers_use_tls() { return tls != nullptr; }

std::shared_ptr<grpc::ServerCredentials> peer_server_credentials() {
  return tls ? tls->server : plain_server_credentials();
}

std::shared_ptr<grpc::ChannelCredentials> peer_channel_credentials() {
  return tls ? tls->channel : plain_channel_credentials();
}

}  // namespace tt::distributed
