#include "server/listener.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/admin_service.h"
#include "server/engine_service.h"

namespace tt::server {
namespace {

// Every stream holds a thread while it lives, and transfers hold one each beside it.
constexpr int kMaxThreads = 2048;
constexpr int kMaxStreamsPerConnection = 128;
// When sessions have ended, all that is left is statuses on their way; an idle client may not look at its connection
// for seconds, and is not waited for.
constexpr std::chrono::milliseconds kGrace{30};

void configure(grpc::ServerBuilder& builder, const Limits& limits) {
  auto message_bytes = static_cast<int>(std::max<size_t>(limits.max_frame_bytes, kMaxChunkBytes) + (64 << 10));
  builder.SetMaxReceiveMessageSize(message_bytes);
  builder.SetMaxSendMessageSize(message_bytes);
  builder.SetResourceQuota(grpc::ResourceQuota("teletensord").SetMaxThreads(kMaxThreads));
  // How long a poller may sleep over the end of its queue, which the server's end waits for now and then: 10 s without.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::CQ_TIMEOUT_MSEC, 1000);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second engine on the port is a mistake
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  // A link that dies without a word is noticed, and its session's lease begins.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
}

}  // namespace

struct Listener::Impl {
  Impl(const Auth& auth, Sessions& sessions, std::function<void()> exit)
      : sessions(sessions), engine(auth, sessions), admin(auth, sessions, std::move(exit)) {}
  Sessions& sessions;
  EngineService engine;
  AdminService admin;
  std::unique_ptr<grpc::Server> server;
};

Listener::Listener(std::unique_ptr<Impl> impl, std::vector<Address> addresses)
    : impl_(std::move(impl)), addresses_(std::move(addresses)) {}

Listener::~Listener() { shut_down(); }

absl::StatusOr<std::unique_ptr<Listener>> Listener::start(const std::vector<Address>& addresses, const Auth& auth,
                                                          Sessions& sessions, std::function<void()> exit) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto impl = std::make_unique<Impl>(auth, sessions, std::move(exit));
  grpc::ServerBuilder builder;
  configure(builder, Limits());
  std::vector<int> ports(addresses.size(), 0);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (absl::Status status = claim(addresses[i]); !status.ok()) return status;
    builder.AddListeningPort(addresses[i].to_string(), grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(&impl->engine);
  builder.RegisterService(&impl->admin);
  impl->server = builder.BuildAndStart();
  std::vector<Address> bound = addresses;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!impl->server || ports[i] == 0) {
      return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", addresses[i].to_string()));
    }
    if (!bound[i].is_unix()) bound[i].port = absl::StrCat(ports[i]);
  }
  return std::unique_ptr<Listener>(new Listener(std::move(impl), std::move(bound)));
}

void Listener::shut_down(std::chrono::milliseconds patience) {
  if (!impl_->server) return;
  impl_->server->GetHealthCheckService()->Shutdown();
  impl_->sessions.end_all(patience);
  impl_->server->Shutdown(std::chrono::system_clock::now() + kGrace);
  impl_->server->Wait();
  impl_->server = nullptr;
  remove_sockets();
}

void Listener::remove_sockets() const {
  for (const Address& address : addresses_) {
    if (address.is_unix()) unlink(address.path.c_str());
  }
}

}  // namespace tt::server
