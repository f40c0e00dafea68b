// The parts of the daemon that its flags describe (flags.h). main.cc connects them.
//
// Functions that return a status fail with a message for the user, which names the flag or the file. Each is called
// once, at the start, by the main thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "distributed/peers/peer_policy.h"
#include "engine/device/device_queue.h"
#include "engine/memory/quota.h"
#include "grpcpp/security/server_credentials.h"
#include "server/audit.h"
#include "server/checkpoint/root.h"
#include "server/daemon/flags.h"
#include "server/rpc/address.h"
#include "server/rpc/auth.h"
#include "server/rpc/principals.h"
#include "server/serving/repository.h"
#include "server/session/session_offload.h"
#include "server/trace/otlp_exporter.h"
#include "server/trace/tracer.h"
#include "server/workers/remote_engines.h"

namespace tt::server {

inline std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

absl::StatusOr<std::vector<Address>> parse_addresses(const std::vector<std::string>& texts);
// `principals` may be null: all clients use one token.
absl::StatusOr<Auth> make_auth(const Flags& flags, const std::shared_ptr<Principals>& principals);
// Credentials of TCP connections; null without TLS. Revoked certificates of clients are recorded in `audit`.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> make_tls(const Flags& flags, AuditLog* audit);
// Returns the folder for each principal's checkpoints.
std::function<std::shared_ptr<const CheckpointRoot>(const Principal&)> checkpoint_roots(const Flags& flags);
// Gives up what a worker does not need, before it serves a client.
absl::Status contain_worker(const Flags& flags);
// Returns the engines with which sessions may communicate.
absl::StatusOr<distributed::PeerPolicy> peer_policy(const Flags& flags);
// Connects to the engines of --engines.
absl::StatusOr<std::unique_ptr<RemoteEngines>> start_engines(const Flags& flags);
// Returns null if tensors of idle sessions stay in their memory, or if workers serve the sessions.
absl::StatusOr<std::shared_ptr<OffloadPlace>> make_offload(const Flags& flags);
// Returns null if the engine exports no spans.
std::shared_ptr<Tracer> make_tracer(const Flags& flags);
// Returns null without a tracer.
absl::StatusOr<std::unique_ptr<OtlpExporter>> make_exporter(const Flags& flags, Tracer* tracer);

// Returns queues for the processors and the GPUs of this engine.
std::shared_ptr<FairQueues> make_queues();

// The models of --models, and what they share.
struct ServedModels {
  std::shared_ptr<Quota> quota;
  std::shared_ptr<Share> share;
  std::unique_ptr<ModelRepository> repository;  // null: there are none
};

// Starts to load the models.
ServedModels make_models(const Flags& flags, AuditLog* audit, const std::shared_ptr<FairQueues>& queues,
                         const std::shared_ptr<Principals>& principals);

// Returns why another process cannot replace this one; empty if it can.
std::string why_not_upgraded(const Flags& flags);

}  // namespace tt::server
