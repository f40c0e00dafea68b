#include "server/daemon/parts.h"

#include <sys/stat.h>

#include <filesystem>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "distributed/store/peer_tls.h"
#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "proto/certificate.h"
#include "proto/credentials.h"
#include "server/log.h"
#include "server/serving/generation/generation_model.h"
#include "server/workers/containment.h"
#include "server/workers/syscall_filter.h"
#include "spdlog/spdlog.h"

namespace tt::server {

absl::StatusOr<std::vector<Address>> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<Address> addresses;
  for (const std::string& text : texts) {
    absl::StatusOr<Address> address = parse_address(text);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  return addresses;
}

absl::StatusOr<Auth> make_auth(const Flags& flags, const std::shared_ptr<Principals>& principals) {
  if (flags.is_worker()) return Auth::closed();
  // A private engine's socket is in a folder that only its owner can enter.
  if (flags.no_auth || flags.private_engine) return Auth::disabled();
  return Auth::from_files(flags.token_file, flags.admin_token_file, principals);
}

// Reports changed files of certificates, and whether they are used.
void log_tls_files(const absl::Status& status) {
  static LogLimit limit;
  if (status.ok()) {
    limit.info("the changed files of certificates are in use");
  } else {
    limit.warn(absl::StrCat("the previous certificates stay in use: ", status.message()));
  }
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> make_tls(const Flags& flags, AuditLog* audit) {
  if (flags.tls_self_signed) {
    absl::Status created = create_self_signed(flags.tls.certificate, flags.tls.key);
    if (!created.ok()) return created;
  }
  if (flags.tls.certificate.empty()) return nullptr;
  if (!flags.tls_peer_ca.empty()) {
    const TlsFiles files{flags.tls.certificate, flags.tls.key, flags.tls_peer_ca};
    if (absl::Status status = distributed::use_peer_tls(files, &log_tls_files); !status.ok()) return status;
  }
  struct stat key {};  // a group may share it, as Debian's ssl-cert does
  if (!flags.is_worker() && stat(flags.tls.key.c_str(), &key) == 0 && (key.st_mode & S_IRWXO) != 0) {
    spdlog::warn("the private key {} is accessible to all users of this host; use 'chmod o-rwx'", flags.tls.key);
  }
  return server_credentials(flags.tls, [audit](const absl::Status& status) {
    if (!absl::IsUnauthenticated(status)) return log_tls_files(status);
    static LogLimit limit;
    limit.warn(status.message());
    audit->refused("", status);
  });
}

std::function<std::shared_ptr<const CheckpointRoot>(const Principal&)> checkpoint_roots(const Flags& flags) {
  if (!flags.checkpoint_root.empty()) {
    const std::string folder = std::filesystem::absolute(flags.checkpoint_root).lexically_normal();
    const bool is_shared = !flags.private_engine && !flags.no_auth;
    return [=](const Principal& principal) {
      return std::make_shared<const CheckpointRoot>(folder, is_shared ? principal.name : "", principal.quota);
    };
  }
  if (!flags.private_engine) return {};
  // a private engine runs as the user of its only client
  return [](const Principal&) { return CheckpointRoot::unrestricted(); };
}

absl::Status contain_worker(const Flags& flags) {
  if (flags.worker_memory != 0) {
    Devices::instance().allocator(Device()).set_limit(flags.worker_memory);
    if (absl::Status status = limit_memory(flags.worker_memory); !status.ok()) return status;
  }
  return install_syscall_filter();
}

absl::StatusOr<distributed::PeerPolicy> peer_policy(const Flags& flags) {
  if (flags.private_engine && flags.peer_networks.empty()) return distributed::PeerPolicy::any();
  return distributed::PeerPolicy::parse(flags.peer_networks, flags.peer_ports);
}

absl::StatusOr<std::unique_ptr<RemoteEngines>> start_engines(const Flags& flags) {
  RemoteEngines::Options options;
  for (const std::string& each : flags.engines) {
    absl::StatusOr<RemoteEngines::Engine> engine = RemoteEngines::parse(each);
    if (!engine.ok()) return engine.status();
    options.engines.push_back(*std::move(engine));
  }
  absl::StatusOr<std::string> token = read_token_file(flags.engines_token_file);
  if (!token.ok()) return token.status();
  options.token = *std::move(token);
  options.authorities = flags.engines_ca;
  return RemoteEngines::start(std::move(options));
}

absl::StatusOr<std::shared_ptr<OffloadPlace>> make_offload(const Flags& flags) {
  if (!flags.offloads() || flags.isolates()) return nullptr;
  if (flags.offload_dir.empty()) return std::make_shared<OffloadPlace>(nullptr);
  auto folder = OffloadFolder::open(flags.offload_dir, {flags.offload_limit, flags.offload_principal_limit});
  if (!folder.ok()) return folder.status();
  return std::make_shared<OffloadPlace>(*std::move(folder));
}

std::shared_ptr<Tracer> make_tracer(const Flags& flags) {
  if (flags.otlp.empty()) return nullptr;
  const std::chrono::duration<double> slow(flags.otlp_slow_seconds);
  return std::make_shared<Tracer>(
      Tracer::Options{flags.otlp_ratio, std::chrono::duration_cast<std::chrono::nanoseconds>(slow)});
}

absl::StatusOr<std::unique_ptr<OtlpExporter>> make_exporter(const Flags& flags, Tracer* tracer) {
  if (tracer == nullptr) return nullptr;
  absl::StatusOr<OtlpEndpoint> endpoint = parse_otlp_endpoint(flags.otlp);
  if (!endpoint.ok()) return endpoint.status();
  endpoint->authorities = flags.otlp_ca;
  auto exporter = OtlpExporter::start(*endpoint, *tracer);
  if (exporter.ok() && !flags.is_worker()) {
    spdlog::info("exporting spans to {}{}", endpoint->target, endpoint->tls ? " with TLS" : ", unencrypted");
  }
  return exporter;
}

std::shared_ptr<FairQueues> make_queues() {
  const std::vector<DeviceInfo> devices = Devices::instance().list();
  const auto gpus = absl::c_count_if(devices, [](const DeviceInfo& d) { return d.device.type == DeviceType::kCUDA; });
  return std::make_shared<FairQueues>(static_cast<size_t>(num_threads()), static_cast<size_t>(gpus));
}

ServedModels make_models(const Flags& flags, AuditLog* audit, const std::shared_ptr<FairQueues>& queues,
                         const std::shared_ptr<Principals>& principals) {
  ServedModels models;
  if (!flags.serves_models()) return models;
  models.quota = std::make_shared<Quota>("models", QuotaLimits{.memory = flags.model_memory});
  models.share = std::make_shared<Share>("models");
  ModelRepository::Options options;
  options.folder = std::filesystem::absolute(flags.models);
  options.poll = milliseconds(flags.model_poll_seconds);
  options.load_timeout = milliseconds(flags.model_load_timeout);
  options.converter.command = absl::StrSplit(flags.model_converter, ' ', absl::SkipEmpty());
  options.converter.cache = flags.model_cache;
  options.converter.cache_bytes = flags.model_cache_limit;
  options.resources = {.quota = models.quota,
                       .payer_of =
                           [principals](const std::string& name) {
                             const auto found = principals ? principals->by_name(name) : absl::NotFoundError("");
                             return found.ok() ? std::make_pair(found->quota, found->share)
                                               : std::make_pair(std::shared_ptr<Quota>(), std::shared_ptr<Share>());
                           },
                       .queues = queues,
                       .share = models.share,
                       .make_streaming = &generation::GenerationModel::make};
  options.audit = audit;
  models.repository = std::make_unique<ModelRepository>(std::move(options));
  models.repository->start();
  return models;
}

std::string why_not_upgraded(const Flags& flags) {
  if (flags.private_engine) return "a private engine ends with its client and cannot be replaced";
  if (flags.is_worker()) return "this is a worker; upgrade its engine";
  if (flags.isolates()) return "an engine with --isolate=principal cannot be replaced without ending its sessions";
  if (!flags.devices.empty()) return "an engine with --devices cannot be replaced without ending its sessions";
  if (!flags.engines.empty()) return "an engine with --engines cannot be replaced; upgrade each of its engines";
  if (!flags.placed_by.empty()) return "an engine with --placed-by cannot be replaced without ending its sessions";
  return "";
}

}  // namespace tt::server
