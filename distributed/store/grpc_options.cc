#include "distributed/store/grpc_options.h"

#include <openssl/crypto.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/store/peer_tls.h"
#include "proto/keepalive.h"

namespace tt::distributed {
namespace {

constexpr size_t kMaxBufferBytes = size_t{1} << 30;  // of gRPC's buffers
constexpr int kMaxMetadataBytes = 16 << 10;
constexpr int kHandshakeMilliseconds = 10'000;
constexpr int kMinReconnectMilliseconds = 100;
constexpr int kMaxReconnectMilliseconds = 1'000;

}  // namespace

absl::Status ServerPort::open(grpc::ServerBuilder* builder, const std::string& address, const std::string& service,
                              const OpenGate& open_gate) {
  if (open_gate) {
    absl::StatusOr<std::unique_ptr<ConnectionGate>> gate = open_gate(address, peers_use_tls());
    if (!gate.ok()) return gate.status();
    gate_ = *std::move(gate);
    number_ = gate_->port();
    using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    sink_ = builder->experimental().AddExternalConnectionAcceptor(External::FROM_FD, peer_server_credentials());
  } else {
    builder->AddListeningPort(address, peer_server_credentials(), &number_);
  }
  builder->SetMaxSendMessageSize(-1);
  builder->SetResourceQuota(grpc::ResourceQuota(service).Resize(kMaxBufferBytes));
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two servers must not share a port
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMilliseconds);
  return absl::OkStatus();
}

bool ServerPort::start() {
  if (gate_) gate_->start(std::move(sink_));
  return number_ != 0;
}

void ServerPort::stop() {
  if (gate_) gate_->stop();
}

absl::Status ServerPort::checked(const grpc::GenericCallbackServerContext& context, absl::Status status) const {
  if (gate_) status.ok() ? gate_->authenticated(context.peer()) : gate_->refused(context.peer());
  return status;
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // a call may have an effect that must not happen twice
  // The server may start seconds after its clients, and its name may become known only then.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMinReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kMaxReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // a call may wait for any time
  return arguments;
}

std::string channel_target(const std::string& address) { return absl::StrCat("dns:///", address); }

RequiredToken::RequiredToken(absl::string_view service, absl::string_view token)
    : service_(service), authorization_(absl::StrCat("Bearer ", token)) {}

absl::Status RequiredToken::check(const grpc::GenericCallbackServerContext& context) const {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) {
    return absl::UnauthenticatedError(
        absl::StrCat("[", service_, "] missing bearer token; pass the ", service_, "'s token"));
  }
  const grpc::string_ref given = found->second;
  if (given.size() == authorization_.size() && CRYPTO_memcmp(given.data(), authorization_.data(), given.size()) == 0) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(absl::StrCat("[", service_, "] the token does not belong to this ", service_));
}

}  // namespace tt::distributed
