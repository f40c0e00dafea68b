// teletensord: builds the daemon from its parts.
#include <grpc/grpc.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "distributed/peers/peer_policy.h"
#include "engine/device/failed_check.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/dispatcher.h"
#include "proto/certificate.h"
#include "server/admin/sampler.h"
#include "server/admin/status.h"
#include "server/audit.h"
#include "server/daemon/backends.h"
#include "server/daemon/environment.h"
#include "server/daemon/flags.h"
#include "server/daemon/grace_period.h"
#include "server/daemon/listener.h"
#include "server/daemon/operator_folder.h"
#include "server/daemon/parts.h"
#include "server/daemon/private_folder.h"
#include "server/daemon/served_models.h"
#include "server/daemon/service_manager.h"
#include "server/daemon/shutdown_signal.h"
#include "server/daemon/upgrade.h"
#include "server/daemon/worker_arguments.h"
#include "server/daemon/worker_control.h"
#include "server/http/gpu_monitor.h"
#include "server/http/http_server.h"
#include "server/http/metrics.h"
#include "server/log.h"
#include "server/rpc/address.h"
#include "server/rpc/auth.h"
#include "server/rpc/inherited_sockets.h"
#include "server/rpc/peer_gate.h"
#include "server/rpc/principals.h"
#include "server/serving/inference_server.h"
#include "server/serving/publish_model.h"
#include "server/serving/repository.h"
#include "server/trace/otlp_exporter.h"
#include "server/trace/tracer.h"
#include "server/version.h"
#include "server/workers/containment.h"
#include "server/workers/remote_engines.h"
#include "server/workers/workers.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr std::chrono::milliseconds kPrincipalsInterval{500};
constexpr double kOffloadAfterSeconds = 60;
// Maximum time for exporting the remaining spans at the end, and after the end of a private engine's client.
constexpr std::chrono::milliseconds kMaxFlush{2'000}, kFlushAfterClient{1'000};
// For frames and collectives in progress at an upgrade by SIGUSR2.
constexpr double kUpgradeWaitSeconds = 10;
// Attempts to open the HTTP listener after an upgrade.
constexpr int kHttpAttempts = 250;
constexpr std::chrono::milliseconds kHttpPause{20};
// For the process that replaces this one to load the models.
constexpr std::chrono::milliseconds kModelsTime{300'000};
// After that, for this one to answer the inference requests that it has; until connections of HTTP without one are
// closed.
constexpr std::chrono::milliseconds kFinishTime{60'000}, kHttpIdle{1'000};

int print_error(const absl::Status& status) {
  std::cerr << "teletensord: " << status.message() << std::endl;
  return 1;
}

// Logs the addresses and returns them as text.
std::string log_addresses(const Flags& flags, const Listener& listener) {
  const bool tls = !flags.tls.certificate.empty();
  std::vector<std::string> names;
  for (const Address& address : listener.addresses()) {
    names.push_back(absl::StrCat(tls && !address.is_unix() ? "teletensors://" : "", address.to_string()));
    if (!address.is_local() && !tls && !flags.is_worker()) {
      spdlog::warn("{} is reachable from the network; tokens and tensors are sent unencrypted", names.back());
    }
  }
  if (tls && !flags.is_worker()) {
    const absl::StatusOr<std::string> pem = read_pem(flags.tls.certificate);
    const absl::StatusOr<std::string> fingerprint = pem.ok() ? fingerprint_of(*pem) : pem.status();
    spdlog::info("the certificate's fingerprint is {}", fingerprint.ok() ? *fingerprint : "unknown");
  }
  if (!flags.peer_networks.empty() && flags.tls_peer_ca.empty() && tls && !flags.is_worker()) {
    spdlog::warn("connections to other engines are not encrypted; use --tls-peer-ca");
  }
  std::string all = absl::StrJoin(names, " and ");
  if (flags.is_worker()) {
    spdlog::debug("worker of {} listening on {}", flags.worker, all);
  } else if (flags.private_engine) {
    std::cout << "READY " << names[0] << std::endl;
  } else {
    spdlog::info("teletensord {} listening on {}{}", kVersion, all,
                 flags.no_auth ? ", without authentication"
                               : absl::StrCat("; the user token is in ", flags.token_file.native(),
                                              ", the admin token in ", flags.admin_token_file.native()));
  }
  return all;
}

// Runs the daemon until it is shut down and returns the exit code. `folder` may be null. If the process exits inside
// this function, the folder is removed first.
int serve(const Flags& flags, const std::vector<std::string>& command, const std::vector<std::string>& listen,
          std::vector<InheritedSocket> inherited, Takeover* takeover, PrivateFolder* folder) {
  const ServiceManager manager(!flags.private_engine);
  absl::StatusOr<std::vector<Address>> addresses = parse_addresses(listen);
  if (!addresses.ok()) return print_error(addresses.status());
  absl::StatusOr<std::unique_ptr<AuditLog>> audit = std::make_unique<AuditLog>();
  if (!flags.audit_log.empty()) audit = AuditLog::open(flags.audit_log);
  if (!audit.ok()) return print_error(audit.status());
  recover_from_failed_checks();
  // A service manager may send SIGHUP to reload the service; without an audit log it has no effect.
  const bool handles_hangup = !flags.audit_log.empty() || manager.is_present();
  std::unique_ptr<Workers> workers;
  std::unique_ptr<RemoteEngines> engines;
  const auto reopen_log = [&] {
    (*audit)->reopen();
    if (workers && !flags.audit_log.empty()) workers->send_signal(SIGHUP);  // it ends those without an audit log
  };
  std::atomic<Upgrade*> upgrade_once_served{nullptr};
  const auto run_upgrade = [&](const v1::UpgradeRequest& request) -> absl::StatusOr<v1::UpgradeReply> {
    Upgrade* const upgrade = upgrade_once_served.load(std::memory_order_acquire);
    if (upgrade == nullptr) return absl::UnavailableError("the engine is starting");
    return upgrade->run(request);
  };
  const auto on_upgrade = [&] {
    v1::UpgradeRequest request;
    request.set_wait_seconds(kUpgradeWaitSeconds);
    static_cast<void>(run_upgrade(request));  // logs its failure
  };
  ShutdownWaiter shutdown(handles_hangup ? reopen_log : std::function<void()>(),
                          flags.private_engine ? std::function<void()>() : on_upgrade);
  std::shared_ptr<Principals> principals;
  if (!flags.principals.empty()) {
    auto read = Principals::from_file(flags.principals);
    if (!read.ok()) return print_error(read.status());
    principals = *std::move(read);
  }
  absl::StatusOr<Auth> auth = make_auth(flags, principals);
  if (!auth.ok()) return print_error(auth.status());
  auto tls = make_tls(flags, audit->get());
  if (!tls.ok()) return print_error(tls.status());
  if (flags.isolates()) {
    std::vector<Address> served = *addresses;
    for (const InheritedSocket& each : inherited) served.push_back(each.address);
    workers = std::make_unique<Workers>(worker_options(flags, served));
  } else if (!flags.engines.empty()) {
    auto started = start_engines(flags);
    if (!started.ok()) return print_error(started.status());
    engines = *std::move(started);
  } else {
    register_backends(flags.threads, flags.memory_limit, {flags.devices, flags.device_fallback == "on"});
  }
  // Also where workers compute, so that a library that cannot be loaded is reported now.
  if (!flags.operators.empty()) {
    if (absl::Status loaded = load_operators(flags.operators, Dispatcher::instance()); !loaded.ok())
      return print_error(loaded);
  }
  Sessions::Options options;
  options.session_memory_limit = flags.session_memory_limit;
  options.limits.max_group_threads = flags.session_group_threads;
  options.lease = milliseconds(flags.lease_seconds);
  // A network interruption that the session survives must not fail its interrupted uploads.
  options.transfer_timeouts.resume = std::max(options.transfer_timeouts.resume, options.lease);
  options.frame_time_limit = milliseconds(flags.frame_time_limit_seconds);
  options.compression = !flags.no_compression;
  if (flags.private_engine) options.tenant = Account::new_tenant();  // one client: reused memory need not be zeroed
  options.checkpoint_root = checkpoint_roots(flags);
  absl::StatusOr<distributed::PeerPolicy> peers = peer_policy(flags);
  if (!peers.ok()) return print_error(peers.status());
  options.peers = *std::move(peers);
  options.open_gate = &open_peer_gate;
  options.audit = audit->get();
  options.is_isolated = flags.is_worker();
  options.on_end = [&log = **audit](const Session& session) {
    log.record({.event = "session.end", .principal = session.principal(), .session = session.id()});
  };
  const bool serves_sessions = !workers && !engines;
  if (!flags.private_engine && serves_sessions) options.queues = make_queues();
  const auto frame_times = std::make_shared<FrameTimes>();
  if (!flags.http.empty()) options.frame_times = frame_times;
  const std::shared_ptr<Tracer> tracer = make_tracer(flags);
  options.tracer = tracer;
  absl::StatusOr<std::unique_ptr<OtlpExporter>> exporter = make_exporter(flags, tracer.get());
  if (!exporter.ok()) return print_error(exporter.status());
  if (!flags.state_dir.empty()) {
    if (flags.isolates() || !flags.engines.empty() || !flags.placed_by.empty()) {
      return print_error(absl::InvalidArgumentError(
          "--state-dir: expected neither --isolate=principal nor --engines nor --placed-by, with which no sessions are "
          "stored"));
    }
    auto store = SessionStore::open(flags.state_dir, takeover != nullptr);
    if (!store.ok()) return print_error(store.status());
    options.store = *std::move(store);
  }
  auto offload = make_offload(flags);
  if (!offload.ok()) return print_error(offload.status());
  options.offload = *offload;
  options.offload_after =
      milliseconds(flags.offload_after_seconds >= 0 ? flags.offload_after_seconds : kOffloadAfterSeconds);
  // For an exit that does not end the sessions.
  const auto remove_offloaded = [folder = *offload ? (*offload)->folder : nullptr] {
    if (folder) folder->remove();
  };
  Sessions sessions(options);
  const std::unique_ptr<const GpuMonitor> gpus = flags.http.empty() ? nullptr : GpuMonitor::start();
  const Sampler sampler(sessions, serves_sessions ? flags.profile_rate : 0);
  const ServedModels models = make_models(flags, audit->get(), options.queues, principals);
  const EngineStatus status(sessions, sampler, workers.get(), engines.get(), models.repository.get());
  const Metrics metrics(status, serves_sessions ? frame_times.get() : nullptr, tracer.get(), gpus.get());
  std::unique_ptr<Admissions> admissions;
  std::unique_ptr<WorkerControl> control;
  if (flags.is_worker()) {
    if (absl::Status contained = contain_worker(flags); !contained.ok()) return print_error(contained);
    admissions = std::make_unique<Admissions>(flags.worker);
  } else if (!flags.placed_by.empty()) {
    admissions = std::make_unique<Admissions>();
  }
  Placement* placement = workers.get();
  if (engines) placement = engines.get();
  Listener::Options listening{*addresses,
                              std::move(inherited),
                              *tls,
                              flags.open_reflection,
                              flags.connections_per_address,
                              flags.serves_models() ? flags.model_request_limit : 0,
                              takeover != nullptr};
  std::optional<InferenceServer> inference;
  std::optional<ModelPublisher> publisher;
  if (models.repository) {
    publisher.emplace(*models.repository, sessions.published(), std::filesystem::absolute(flags.models));
    inference.emplace(*models.repository, *auth,
                      InferenceServer::Options{.open = flags.models_open,
                                               .shared_memory = flags.model_shared_memory,
                                               .request_bytes = flags.model_request_limit,
                                               .inflight_bytes = flags.model_inflight_limit,
                                               .send_timeout = milliseconds(flags.model_send_timeout)});
  }
  const Listener::Parts parts{*auth,
                              **audit,
                              sessions,
                              status,
                              tracer,
                              workers.get(),
                              placement,
                              admissions.get(),
                              flags.placed_by,
                              inference ? &*inference : nullptr,
                              publisher ? &*publisher : nullptr,
                              run_upgrade};
  auto listener = Listener::start(std::move(listening), parts, [&shutdown] { shutdown.end(); });
  if (!listener.ok()) return print_error(listener.status());
  if (flags.is_worker()) {  // the engine's calls wait until the clients can be served
    auto started =
        WorkerControl::start(WorkerProcess::kControl, *admissions, sessions, status, [&shutdown] { shutdown.end(); });
    if (!started.ok()) return print_error(started.status());
    control = *std::move(started);
  }
  if (takeover != nullptr) {
    const auto load_models = [&]() -> absl::Status {
      return models.repository ? await_served_models(*models.repository, takeover->served(), kModelsTime)
                               : absl::OkStatus();
    };
    if (absl::Status status = takeover->run(sessions, *auth, load_models); !status.ok()) {
      // The sessions, their images on the disk and the sockets' files are still the old process's, so nothing is
      // closed here.
      print_error(status);
      remove_offloaded();
      spdlog::default_logger()->flush();
      _exit(1);
    }
    (*listener)->resume();
    // The old process exits in a moment, and writes no image any more.
    if (options.store) options.store->wait_for_lock();
  }
  std::unique_ptr<HttpServer> http;
  if (!flags.http.empty()) {
    const absl::StatusOr<Address> address = parse_address(flags.http);
    // On this host only, as for unix sockets, HTTP is without TLS.
    const TlsFiles files = address.ok() && address->is_local() ? TlsFiles() : flags.tls;
    const HttpServer::Sources sources{
        *auth, **audit, sessions, status, metrics, gpus.get(), inference ? &*inference : nullptr};
    std::vector<InheritedSocket> sockets;
    if (takeover != nullptr) sockets = takeover->take_http_sockets();
    auto started = address.ok() ? HttpServer::start(*address, files, sources, std::move(sockets)) : address.status();
    // The process that this one replaces exits in a moment.
    for (int i = 0; takeover != nullptr && i < kHttpAttempts && address.ok() && !started.ok(); ++i) {
      std::this_thread::sleep_for(kHttpPause);
      started = HttpServer::start(*address, files, sources);
    }
    if (!started.ok()) return print_error(started.status());
    http = *std::move(started);
    spdlog::info("status page at {}/, metrics at {}/metrics", http->url(), http->url());
  }
  if (principals) {
    principals->watch(kPrincipalsInterval, [&](const std::string& name) {
      audit.value()->record({.event = "principal.revoked", .principal = name, .is_limited = false});
      const size_t ended = placement != nullptr ? placement->revoke(name) : sessions.end_all_of(name);
      spdlog::info("the access of {} was revoked; {} sessions end", name, ended);
    });
  }
  const std::string names = log_addresses(flags, **listener);
  manager.ready(absl::StrCat("listening on ", names));
  Upgrade::Options replacing{command, why_not_upgraded(flags)};
  if (http) replacing.http = http->sockets();
  if (models.repository) {
    replacing.start_time += kModelsTime;
    replacing.served = [&repository = *models.repository] { return served_models(repository); };
  }
  Upgrade upgrade(std::move(replacing), sessions, **listener, manager, [&shutdown] { shutdown.end(); });
  upgrade_once_served.store(&upgrade, std::memory_order_release);
  const char* reason = shutdown.wait(flags.private_engine, flags.client_fd);
  if (upgrade.done()) {  // the sessions and the socket files belong to the new process
    if (inference) {     // requests that this process has received are answered
      std::thread paths;
      if (http) paths = std::thread([&] { http->finish(kHttpIdle, kFinishTime); });
      (*listener)->finish_inference(kFinishTime);
      if (paths.joinable()) paths.join();
    }
    remove_offloaded();
    spdlog::default_logger()->flush();
    _exit(0);
  }
  spdlog::info("shutting down: {}", reason);
  manager.stopping(reason);
  if (principals) principals->stop();
  const auto remove_files = [&] {
    (*listener)->remove_sockets();
    if (folder) folder->remove();
    remove_offloaded();
  };
  if (shutdown.client_exited()) {  // no client waits for running work
    remove_files();
    sessions.end_traces();
    if (*exporter) (*exporter)->shut_down(kFlushAfterClient);
    spdlog::default_logger()->flush();
    _exit(0);
  }
  const std::chrono::milliseconds grace = milliseconds(flags.grace_seconds);
  const GracePeriod deadline(grace, remove_files);
  if (models.repository) models.repository->stop();
  if (workers) workers->stop();
  if (engines) engines->stop();
  // Keeps gRPC until the process ends: its shutdown waits, up to 10 s, for a thread that polls after large writes.
  grpc_init();
  // A private engine ends with its client, so no client waits for its frames.
  (*listener)->shut_down(flags.private_engine ? std::chrono::milliseconds(0) : grace / 2);
  if (*exporter) (*exporter)->shut_down(std::min(kMaxFlush, grace / 4));
  return 0;
}

int run(int argc, char** argv) {
  Flags flags;
  if (std::optional<int> code = parse_flags(argc, argv, &flags)) return *code;
  if (!flags.core_files) forbid_core_files();
  if (flags.is_worker()) {
    if (absl::Status status = begin_containment(); !status.ok()) return print_error(status);
    if (flags.worker_batch) lower_priority();
  }
  start_log(flags.private_engine && flags.log_level == "info" ? "warn" : flags.log_level,
            flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  umask(0077);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that exceeds a size limit is the error of its write
  std::signal(SIGPIPE, SIG_IGN);  // a peer that has closed its connection is the error of a write by OpenSSL
  // Keep transfer buffers in the heap when freed, instead of faulting their pages in again.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  // Distributions build Abseil with its check for deadlocks, by which each lock of gRPC updates a graph of all locks:
  // 5% of the processor's time of small inference requests. The daemon's own locks are checked by the builds with
  // sanitizers.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Each malloc arena keeps memory that its threads freed. With several arenas, one session's frames retained up to 38
  // MiB (tests/server/daemon/exhaustion_test.cc).
  mallopt(M_ARENA_MAX, 1);
  absl::StatusOr<std::vector<InheritedSocket>> inherited = take_inherited_sockets();
  if (!inherited.ok()) return print_error(inherited.status());
  absl::StatusOr<std::unique_ptr<Takeover>> takeover = Takeover::from_environment();
  if (!takeover.ok()) return print_error(takeover.status());
  if (*takeover) inherited = (*takeover)->take_sockets();
  std::vector<Address> addresses;
  for (const InheritedSocket& socket : *inherited) addresses.push_back(socket.address);
  if (absl::Status status = check_inherited(flags, addresses); !status.ok()) {
    print_error(status);
    return 2;  // like any error of the options
  }
  std::unique_ptr<PrivateFolder> folder;
  std::vector<std::string> listen = *takeover ? std::vector<std::string>() : flags.listen;
  if (listen.empty() && flags.private_engine) {
    auto made = PrivateFolder::make();
    if (!made.ok()) return print_error(made.status());
    folder = *std::move(made);
    listen = {folder->address()};
  }
  if (listen.empty() && addresses.empty()) listen = default_addresses();
  std::vector<std::string> command(argv, argv + argc);
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) command[0] = program.native();
  return serve(flags, command, listen, *std::move(inherited), takeover->get(), folder.get());
}

}  // namespace
}  // namespace tt::server

int main(int argc, char** argv) {
  tt::server::reexec_with_clean_env(argv);
  try {
    return tt::server::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "teletensord: " << error.what() << std::endl;
    return 1;
  }
}
