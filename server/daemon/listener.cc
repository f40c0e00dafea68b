#include "server/daemon/listener.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "proto/credentials.h"
#include "proto/keepalive.h"
#include "server/admin/admin_service.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/call_admission.h"
#include "server/rpc/engine_service.h"
#include "server/rpc/listening_sockets.h"
#include "server/rpc/open_service.h"
#include "server/rpc/reflection_guard.h"
#include "server/serving/inference_service.h"
#include "server/serving/models_service.h"

namespace tt::server {
namespace {

constexpr int kMaxStreamsPerConnection = 64;
constexpr int kMaxPollers = 32;
// Maximum total size of gRPC's buffers for all connections, including partially received messages. At the limit gRPC
// first reads less from each peer and then breaks streams, which clients resume.
constexpr size_t kBufferBytes = size_t{1} << 30;
// Time for a new connection to complete the HTTP/2 handshake, and time until a connection without calls is closed.
constexpr int kHandshakeMilliseconds = 10'000;
constexpr int kIdleMilliseconds = 300'000;
// Time for the calls' handlers to return after all sessions have ended: on a busy machine, a client whose connection is
// closed before it has received its stream's status would try to resume until the lease has passed.
constexpr std::chrono::milliseconds kHandlersTimeout{2000};
// Time to send the calls' final statuses. Short, because an idle client may not read its
// connection for seconds.
constexpr std::chrono::milliseconds kGrace{30};

// Until the clients know that their connections are being closed, and calls that they have sent before have arrived.
constexpr std::chrono::milliseconds kLateCalls{150};

void configure(grpc::ServerBuilder& builder, const Limits& limits, size_t least_bytes) {
  auto message_bytes =
      static_cast<int>(std::max({size_t{limits.max_frame_bytes}, kMaxChunkBytes, least_bytes}) + (64 << 10));
  builder.SetMaxReceiveMessageSize(message_bytes);
  builder.SetMaxSendMessageSize(message_bytes);
  builder.SetResourceQuota(grpc::ResourceQuota("teletensord")
                               .SetMaxThreads(CallAdmission::max_threads() + kMaxPollers)
                               .Resize(kBufferBytes));
  // The protocol does not use compressed messages. They are disabled because gRPC decompresses a message before it
  // checks the message's size.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
  // Maximum time that a thread waits for its completion queue, which may delay the server's shutdown. gRPC's default is
  // 10 s.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::CQ_TIMEOUT_MSEC, 1000);
  // Threads that wait for calls: with gRPC's default of 2, nearly every call of several concurrent clients creates a
  // thread, and ends it. Threads that calls have created remain, up to this number, and each of them wakes up once per
  // CQ_TIMEOUT_MSEC.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, kMaxPollers);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  // Detects a silent client, so that the session's lease starts. Connections without calls are not pinged, because no
  // thread of the client may be there to answer: between uploads, nothing polls their connection.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMilliseconds);
}

}  // namespace

struct Listener::Impl {
  Impl(std::unique_ptr<Acceptor> acceptor, const Parts& parts, std::function<void()> exit)
      : acceptor(std::move(acceptor)),
        admission({[this](const std::string& peer) { this->acceptor->authenticated(peer); },
                   [this, &audit = parts.audit](const std::string& peer, const absl::Status& status) {
                     this->acceptor->refused(peer);
                     audit.refused(peer, status);
                   }}),
        sessions(parts.sessions),
        engine(parts.auth, parts.sessions, admission, parts.audit, {parts.placement, parts.admissions}),
        admin(parts.auth, parts.sessions, admission, parts.audit, parts.status, parts.tracer, std::move(exit),
              parts.workers, {parts.placed_by.empty() ? nullptr : parts.admissions, parts.placed_by}, parts.upgrade),
        open(admission) {
    if (parts.inference != nullptr) inference.emplace(*parts.inference, admission);
    if (parts.publisher != nullptr) models.emplace(*parts.publisher, parts.auth, admission);
  }
  std::unique_ptr<Acceptor> acceptor;
  CallAdmission admission;
  Sessions& sessions;
  EngineService engine;
  AdminService admin;
  std::optional<InferenceService> inference;
  std::optional<ModelsService> models;
  OpenService open;
  std::unique_ptr<grpc::Server> server;
};

Listener::Listener(std::unique_ptr<Impl> impl, std::vector<Address> addresses, std::vector<bool> are_own,
                   std::vector<std::string> own_paths)
    : impl_(std::move(impl)),
      addresses_(std::move(addresses)),
      are_own_(std::move(are_own)),
      own_paths_(std::move(own_paths)) {}

Listener::~Listener() { shut_down(); }

absl::StatusOr<std::unique_ptr<Listener>> Listener::start(Options options, const Parts& parts,
                                                          std::function<void()> exit) {
  using Builder = grpc::ServerBuilder;
  std::vector<Address> addresses = options.addresses;
  absl::StatusOr<std::vector<ListeningSocket>> sockets = open_listening_sockets(&addresses);
  if (!sockets.ok()) return sockets.status();
  std::vector<bool> are_own(sockets->size(), true);
  std::vector<std::string> own_paths;
  for (const Address& address : addresses) {
    if (address.is_unix()) own_paths.push_back(address.path);
  }
  for (InheritedSocket& each : options.inherited) {
    addresses.push_back(each.address);
    are_own.push_back(each.is_own);
    if (each.is_own && each.address.is_unix()) own_paths.push_back(each.address.path);
    sockets->push_back({std::move(each.fd), each.address.is_unix()});
  }
  auto acceptor =
      std::make_unique<Acceptor>(*std::move(sockets), options.connections_per_address, options.tls != nullptr);
  if (absl::Status status = acceptor->ok(); !status.ok()) return status;
  auto impl = std::make_unique<Impl>(std::move(acceptor), parts, std::move(exit));
  grpc::EnableDefaultHealthCheckService(false);  // OpenService answers health checks
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  Builder builder;
  configure(builder, Limits(), options.message_bytes);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> guards;
  guards.push_back(std::make_unique<ReflectionGuard>(parts.auth, options.open_reflection, impl->admission));
  builder.experimental().SetInterceptorCreators(std::move(guards));
  constexpr auto kFromDescriptor = Builder::experimental_type::ExternalConnectionType::FROM_FD;
  Acceptor::Sinks sinks;
  sinks.plain = builder.experimental().AddExternalConnectionAcceptor(kFromDescriptor, plain_server_credentials());
  if (options.tls) sinks.tls = builder.experimental().AddExternalConnectionAcceptor(kFromDescriptor, options.tls);
  builder.RegisterService(&impl->engine);
  builder.RegisterService(&impl->admin);
  if (impl->inference) builder.RegisterService(&*impl->inference);
  if (impl->models) builder.RegisterService(&*impl->models);
  builder.RegisterCallbackGenericService(&impl->open);
  impl->server = builder.BuildAndStart();
  if (!impl->server) return absl::InternalError("cannot start the gRPC server");
  impl->acceptor->start(std::move(sinks), options.paused);
  return std::unique_ptr<Listener>(
      new Listener(std::move(impl), std::move(addresses), std::move(are_own), std::move(own_paths)));
}

void Listener::pause() { impl_->acceptor->pause(); }

void Listener::resume() { impl_->acceptor->resume(); }

std::vector<Listener::Socket> Listener::sockets() const {
  std::vector<Socket> sockets;
  for (const ListeningSocket& each : impl_->acceptor->sockets()) {
    sockets.push_back({each.fd.get(), are_own_[sockets.size()]});
  }
  return sockets;
}

void Listener::finish_inference(std::chrono::milliseconds timeout) {
  // Tells the clients to use other connections, and waits for all calls.
  std::thread([server = impl_->server.get(), timeout] {
    server->Shutdown(std::chrono::system_clock::now() + timeout);
  }).detach();
  std::this_thread::sleep_for(kLateCalls);
  impl_->sessions.end_streams();
  impl_->admission.wait_for_calls(CallAdmission::Kind::kInference, timeout);
  std::this_thread::sleep_for(kLateCalls);  // for the answers to leave this process
}

void Listener::shut_down(std::chrono::milliseconds timeout) {
  if (!impl_->server) return;
  impl_->acceptor->stop();
  impl_->sessions.end_all(timeout);
  impl_->admission.wait_until_idle(kHandlersTimeout);
  impl_->server->Shutdown(std::chrono::system_clock::now() + kGrace);
  impl_->server->Wait();
  impl_->server = nullptr;
  remove_sockets();
}

void Listener::remove_sockets() const {
  for (const std::string& path : own_paths_) unlink(path.c_str());
}

}  // namespace tt::server
