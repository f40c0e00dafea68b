#include "server/daemon/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/user_folder.h"
#include "distributed/peers/peer_policy.h"
#include "proto/default_socket.h"
#include "server/rpc/address.h"
#include "server/trace/otlp_exporter.h"
#include "server/version.h"
#include "server/workers/port_range.h"
#include "server/workers/remote_engines.h"

namespace tt::server {
namespace {

// Empty if the user has no home.
std::filesystem::path default_file(UserFolder folder, const char* name) {
  const std::filesystem::path path = user_folder(folder);
  return path.empty() ? path : path / "teletensor" / name;
}

// Checks that files without a path of their own have a folder.
const char* missing_folder(const Flags& flags) {
  if (flags.is_worker()) return nullptr;
  if (flags.token_file.empty() && !flags.no_auth && !flags.private_engine) {
    return "no folder for the tokens: expected an absolute path in HOME, XDG_CONFIG_HOME or the password database; set "
           "HOME, or use --token-file with a file that only this user can read";
  }
  if (flags.tls_self_signed && flags.tls.certificate.empty()) {
    return "no folder for the key of TLS: expected an absolute path in HOME, XDG_CONFIG_HOME or the password database; "
           "set HOME, or use --tls-dir";
  }
  if (flags.serves_models() && flags.model_cache.empty()) {
    return "no folder for converted models: expected an absolute path in HOME, XDG_CACHE_HOME or the password "
           "database; set HOME, or use --model-cache";
  }
  return nullptr;
}

std::string address_error(std::string& text) { return std::string(parse_address(text).status().message()); }
std::string http_error(std::string& text) {
  const absl::StatusOr<Address> address = parse_address(text);
  if (!address.ok()) return std::string(address.status().message());
  return address->is_unix() ? "expected HOST:PORT, got " + text : "";
}
std::string otlp_error(std::string& text) { return std::string(parse_otlp_endpoint(text).status().message()); }
std::string network_error(std::string& text) {
  return std::string(distributed::PeerPolicy::parse({text}, {}).status().message());
}
std::string ports_error(std::string& text) {
  return std::string(distributed::PeerPolicy::parse({}, {text}).status().message());
}

std::string worker_ports_error(std::string& text) { return std::string(PortRange::parse(text).status().message()); }

std::string engine_error(std::string& text) { return std::string(RemoteEngines::parse(text).status().message()); }

constexpr uint64_t kMinWorkerMemory = uint64_t{64} << 20;

constexpr char kFooter[] = R"(
Every option can also be set by TELETENSOR_<OPTION> in the environment, or in a file with --config.

Examples:
  teletensord                               one engine for this user on this machine
  teletensord --listen 0.0.0.0:7070 --tls-self-signed
                                            reachable from the network, encrypted: clients connect to
                                            teletensors://HOST:7070 with the fingerprint that is printed
  teletensord --session-memory-limit 8GB    limit each client to 8 GB)";

void add_options(CLI::App& app, Flags* flags) {
  app.add_option("--listen", flags->listen, "unix:PATH or HOST:PORT; may be repeated")
      ->envname("TELETENSOR_LISTEN")
      ->delimiter(',')
      ->check(CLI::Validator(&address_error, "", "address"))
      ->type_name("ADDRESS")
      ->default_str(absl::StrCat(default_addresses()[0], " ", default_addresses()[1]));
  app.add_option("--http", flags->http,
                 "HOST:PORT for HTTP: a status page, /metrics (Prometheus), /healthz and /readyz")
      ->envname("TELETENSOR_HTTP")
      ->check(CLI::Validator(&http_error, "", "address"))
      ->type_name("ADDRESS");
  app.add_option("--token-file", flags->token_file, "token that clients need to open a session; created at first start")
      ->envname("TELETENSOR_TOKEN_FILE")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--admin-token-file", flags->admin_token_file,
                 "token for administrative calls; created at first start (default: admin-token beside --token-file)")
      ->envname("TELETENSOR_ADMIN_TOKEN_FILE")
      ->type_name("FILE");
  app.add_option("--principals", flags->principals,
                 "further principals, written by `teletensor user`; read again when it changes")
      ->envname("TELETENSOR_PRINCIPALS")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_option("--audit-log", flags->audit_log,
                 "append a line of JSON for every session, administrative call and refusal; SIGHUP opens it again")
      ->envname("TELETENSOR_AUDIT_LOG")
      ->type_name("FILE");
  app.add_flag("--no-auth", flags->no_auth, "accept every client that can reach the engine")
      ->envname("TELETENSOR_NO_AUTH");
  app.add_option("--tls-cert", flags->tls.certificate, "serve TCP with TLS: certificate and its chain (PEM)")
      ->envname("TELETENSOR_TLS_CERT")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_option("--tls-key", flags->tls.key, "private key of --tls-cert (PEM); both are read again when they change")
      ->envname("TELETENSOR_TLS_KEY_FILE")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_option("--tls-client-ca", flags->tls.authorities,
                 "require certificates of clients, signed by one of these authorities (PEM), besides the token")
      ->envname("TELETENSOR_TLS_CLIENT_CA")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_option(
         "--tls-client-crl", flags->tls.revocations,
         "refuse certificates of clients that these lists (CRLs, PEM) of the authorities revoke; read again when "
         "it changes")
      ->envname("TELETENSOR_TLS_CLIENT_CRL")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_flag("--tls-self-signed", flags->tls_self_signed,
               "serve TCP with TLS and a certificate that is created at first start; prints the fingerprint, by which "
               "clients recognise it")
      ->envname("TELETENSOR_TLS_SELF_SIGNED");
  app.add_option("--tls-dir", flags->tls_dir,
                 "folder of the certificate and key of --tls-self-signed (default: that of --token-file)")
      ->envname("TELETENSOR_TLS_DIR")
      ->type_name("DIR");
  app.add_option("--tls-peer-ca", flags->tls_peer_ca,
                 "use TLS between engines (stores, pulled tensors): each must have a certificate that one of these "
                 "authorities (PEM) signed")
      ->envname("TELETENSOR_TLS_PEER_CA")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_flag("--insecure", flags->insecure,
               "allow addresses that other hosts reach without TLS: tokens and tensors are readable on the network")
      ->envname("TELETENSOR_INSECURE");
  app.add_flag("--private", flags->private_engine,
               "serve one client on a unix socket: print READY, exit when standard input ends");
  app.add_flag("--core-files", flags->core_files,
               "allow core files after a crash, which contain tokens, keys and tensors (default: none is written)")
      ->envname("TELETENSOR_CORE_FILES");
  app.add_flag("--open-reflection", flags->open_reflection, "serve gRPC reflection without a token")
      ->envname("TELETENSOR_OPEN_REFLECTION");
  app.add_option("--connections-per-address", flags->connections_per_address,
                 "maximum number of TCP connections from one address")
      ->envname("TELETENSOR_CONNECTIONS_PER_ADDRESS")
      ->check(CLI::Range(1, 4096))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--client-fd", flags->client_fd,
                 "pidfd of the private engine's client; the engine exits when the client does")
      ->group("");
  app.add_option("--memory-limit", flags->memory_limit,
                 "bytes that all tensors of a device may use, such as 32GB; 0: no limit")
      ->envname("TELETENSOR_MEMORY_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--session-memory-limit", flags->session_memory_limit,
                 "bytes that the tensors of one session may use; 0: no limit")
      ->envname("TELETENSOR_SESSION_MEMORY_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--devices", flags->devices,
                 "add the devices of a device library: a shared object with the table of teletensor_device.h, or a "
                 "folder of them. It runs in the engine's process with its rights")
      ->envname("TELETENSOR_DEVICES")
      ->delimiter(',')
      ->type_name("FILE");
  app.add_option("--device-fallback", flags->device_fallback,
                 "execute operators for which a device library has no kernel on the CPU (on), or let them fail (off)")
      ->envname("TELETENSOR_DEVICE_FALLBACK")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--engines", flags->engines,
                 "open sessions in these engines instead of here, in the least loaded one: HOST:PORT, "
                 "teletensors://HOST:PORT or teletensors://HOST:PORT#FINGERPRINT")
      ->envname("TELETENSOR_ENGINES")
      ->delimiter(',')
      ->check(CLI::Validator(&engine_error, "", "engine"))
      ->type_name("ENGINES");
  app.add_option("--engines-token-file", flags->engines_token_file,
                 "token of the principal as whom this engine opens sessions in --engines")
      ->envname("TELETENSOR_ENGINES_TOKEN_FILE")
      ->type_name("FILE");
  app.add_option("--engines-ca", flags->engines_ca,
                 "authorities (PEM) of the certificates of --engines without a fingerprint, instead of the system's")
      ->envname("TELETENSOR_ENGINES_CA")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_option("--placed-by", flags->placed_by,
                 "operator whose engine (--engines) opens sessions here for its own principals; admin: the admin token")
      ->envname("TELETENSOR_PLACED_BY")
      ->type_name("PRINCIPAL");
  app.add_option("--isolate", flags->isolate, "principal: serve each principal in a worker process of its own")
      ->envname("TELETENSOR_ISOLATE")
      ->check(CLI::IsMember({"none", "principal"}))
      ->type_name("WHOM")
      ->capture_default_str();
  app.add_option("--worker-memory", flags->worker_memory, "bytes of host memory that each worker may use; 0: no limit")
      ->envname("TELETENSOR_WORKER_MEMORY")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--worker-idle", flags->worker_idle_seconds, "time without sessions after which a worker ends")
      ->envname("TELETENSOR_WORKER_IDLE")
      ->check(CLI::Range(0.1, 7 * 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--worker-ports", flags->worker_ports,
                 "TCP ports on which workers listen, such as 7100-7199, for firewalls; default: the system chooses")
      ->envname("TELETENSOR_WORKER_PORTS")
      ->check(CLI::Validator(&worker_ports_error, "", "ports"))
      ->type_name("PORTS");
  app.add_option("--worker", flags->worker, "the principal of this worker; used by the engine that starts it")
      ->group("");
  app.add_flag("--worker-batch", flags->worker_batch)->group("");
  app.add_option("--session-group-threads", flags->session_group_threads,
                 "threads that the process groups and stores of one session may use; 0: no limit")
      ->envname("TELETENSOR_SESSION_GROUP_THREADS")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--checkpoint-root", flags->checkpoint_root,
         "folder below which sessions may read and write checkpoints, in the subfolder user or admin, depending "
         "on the token; with --no-auth in the folder itself")
      ->envname("TELETENSOR_CHECKPOINT_ROOT")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  app.add_option("--state-dir", flags->state_dir,
                 "folder for images of the sessions that ask for them, which continue after a crash or a restart")
      ->envname("TELETENSOR_STATE_DIR")
      ->excludes("--private")
      ->type_name("DIR");
  app.add_option("--offload-dir", flags->offload_dir,
                 "folder to which tensors of idle sessions move when another session needs their memory")
      ->envname("TELETENSOR_OFFLOAD_DIR")
      ->excludes("--private")
      ->type_name("DIR");
  app.add_option(
         "--offload-after", flags->offload_after_seconds,
         "time without use after which a session is idle; default: 60 with --offload-dir; without it, only tensors "
         "on GPUs move, to host memory")
      ->envname("TELETENSOR_OFFLOAD_AFTER")
      ->excludes("--private")
      ->check(CLI::Range(0.0, 7 * 86400.0))
      ->type_name("SECONDS");
  app.add_option("--offload-limit", flags->offload_limit, "bytes that the files in --offload-dir may have; 0: no limit")
      ->envname("TELETENSOR_OFFLOAD_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--offload-principal-limit", flags->offload_principal_limit,
                 "bytes of them that may be of one principal's sessions; 0: no limit")
      ->envname("TELETENSOR_OFFLOAD_PRINCIPAL_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--lease", flags->lease_seconds, "time that a session is kept after its connection breaks")
      ->envname("TELETENSOR_LEASE")
      ->check(CLI::Range(0.1, 7 * 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--grace", flags->grace_seconds, "maximum time from SIGTERM to exit; running frames get half of it")
      ->envname("TELETENSOR_GRACE")
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--frame-time-limit", flags->frame_time_limit_seconds,
                 "compute time after which a frame is cancelled; 0: no limit")
      ->envname("TELETENSOR_FRAME_TIME_LIMIT")
      ->check(CLI::Range(0.0, 7 * 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--profile-rate", flags->profile_rate,
                 "samples per second, while a session has work, for `teletensor profile`; 0: none")
      ->envname("TELETENSOR_PROFILE_RATE")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--peer-networks", flags->peer_networks,
                 "networks of the engines with which sessions may form groups and exchange tensors, this engine's own "
                 "among them, such as 10.0.0.0/8; default: none, with --private all")
      ->envname("TELETENSOR_PEER_NETWORKS")
      ->delimiter(',')
      ->check(CLI::Validator(&network_error, "", "network"))
      ->type_name("NETWORK");
  app.add_option("--peer-ports", flags->peer_ports, "ports of these engines, and for listening at a session's request")
      ->envname("TELETENSOR_PEER_PORTS")
      ->delimiter(',')
      ->check(CLI::Validator(&ports_error, "", "ports"))
      ->type_name("PORTS")
      ->capture_default_str();
  app.add_flag("--no-compression", flags->no_compression, "neither accept nor send compressed chunks of tensors")
      ->envname("TELETENSOR_NO_COMPRESSION");
  app.add_option("--threads", flags->threads, "threads per operation; 0: OMP_NUM_THREADS, or one per core")
      ->envname("TELETENSOR_THREADS")
      ->check(CLI::Range(0, 4096))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--log-level", flags->log_level, "trace, debug, info, warn, error or off")
      ->envname("TELETENSOR_LOG_LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->type_name("LEVEL")
      ->capture_default_str();
  app.add_option("--log-format", flags->log_format, "text, or json: an object per line")
      ->envname("TELETENSOR_LOG_FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  app.add_option("--otlp", flags->otlp,
                 "export spans to an OpenTelemetry collector by OTLP/gRPC: HOST:PORT, or https://HOST:PORT with TLS")
      ->envname("TELETENSOR_OTLP")
      ->check(CLI::Validator(&otlp_error, "", "collector"))
      ->type_name("ENDPOINT");
  app.add_option("--otlp-ca", flags->otlp_ca,
                 "authorities (PEM) of the collector's certificate, instead of the system's")
      ->envname("TELETENSOR_OTLP_CA")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  app.add_option("--otlp-ratio", flags->otlp_ratio,
                 "part of the frames without a client's trace context that become spans")
      ->envname("TELETENSOR_OTLP_RATIO")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("RATIO")
      ->capture_default_str();
  app.add_option("--otlp-slow", flags->otlp_slow_seconds, "time after which every frame becomes a span")
      ->envname("TELETENSOR_OTLP_SLOW")
      ->check(CLI::Range(0.0, 7 * 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option(
         "--operators", flags->operators,
         "load the operators of the shared objects DIR/*.so, whose code runs inside this process; the folder and "
         "the files may be writable only by this user or root")
      ->envname("TELETENSOR_OPERATORS")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  app.add_option(
         "--models", flags->models,
         "serve the models of this folder, DIR/NAME/VERSION/, by the Open Inference Protocol: gRPC on --listen, "
         "REST below /v2 on --http")
      ->envname("TELETENSOR_MODELS")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  app.add_option("--model-poll", flags->model_poll_seconds,
                 "time between two looks at the folder of --models; 0: models are loaded at the start and by calls")
      ->envname("TELETENSOR_MODEL_POLL")
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--model-load-timeout", flags->model_load_timeout,
                 "seconds after which loading a model ends, with its conversion and warm-up")
      ->envname("TELETENSOR_MODEL_LOAD_TIMEOUT")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag("--models-open", flags->models_open,
               "answer inference requests without a token; loading and unloading models still needs an operator's")
      ->envname("TELETENSOR_MODELS_OPEN");
  app.add_flag("--model-shared-memory", flags->model_shared_memory,
               "let clients on this host pass tensors in POSIX shared memory, which this process can open")
      ->envname("TELETENSOR_MODEL_SHARED_MEMORY");
  app.add_option("--model-memory", flags->model_memory, "bytes that all models may use together; 0: no limit")
      ->envname("TELETENSOR_MODEL_MEMORY")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--model-request-limit", flags->model_request_limit, "bytes of one inference request or response")
      ->envname("TELETENSOR_MODEL_REQUEST_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--model-inflight-limit", flags->model_inflight_limit,
                 "bytes of all inference requests in progress together")
      ->envname("TELETENSOR_MODEL_INFLIGHT_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option(
         "--model-send-timeout", flags->model_send_timeout,
         "seconds after which a call of inference ends whose client does not read an answer, or a stream's response; "
         "one second more for each 256 KiB")
      ->envname("TELETENSOR_MODEL_SEND_TIMEOUT")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--model-converter", flags->model_converter,
                 "command that makes native models of ONNX and .pt2 files, run as COMMAND INPUT OUTPUT")
      ->envname("TELETENSOR_MODEL_CONVERTER")
      ->type_name("COMMAND")
      ->capture_default_str();
  app.add_option("--model-cache", flags->model_cache,
                 "folder of converted models (default: teletensor/models in the user's cache folder)")
      ->envname("TELETENSOR_MODEL_CACHE")
      ->type_name("DIR");
  app.add_option("--model-cache-limit", flags->model_cache_limit,
                 "bytes of --model-cache, from which the models that were not used for the longest time are removed")
      ->envname("TELETENSOR_MODEL_CACHE_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_flag("--check-config", flags->check_config, "check the configuration, print it, and exit");
  app.set_config("--config", "", "read options from this file (option = value)")->envname("TELETENSOR_CONFIG");
  app.set_version_flag("--version", absl::StrCat("teletensord ", kVersion));
  app.footer(kFooter);
}

bool reaches_network(const Flags& flags) {
  const auto is_reachable = [](const std::string& text) {
    absl::StatusOr<Address> address = parse_address(text);
    return address.ok() && !address->is_local();
  };
  return is_reachable(flags.http) || std::any_of(flags.listen.begin(), flags.listen.end(), is_reachable);
}

constexpr char kReachable[] =
    "an address that other hosts can reach requires TLS: use --tls-self-signed, or --tls-cert and --tls-key; "
    "--insecure allows it without encryption";

bool allows_network(const Flags& flags) {
  return flags.insecure || flags.tls_self_signed || !flags.tls.certificate.empty();
}

// The same for workers.
const char* conflicting_isolation(const Flags& flags) {
  if (flags.is_worker()) return nullptr;
  if (!flags.isolates()) {
    return flags.worker_memory != 0 || !flags.worker_ports.empty()
               ? "--worker-memory and --worker-ports require --isolate=principal"
               : nullptr;
  }
  if (flags.private_engine) return "--isolate has no effect with --private, which serves one client";
  if (flags.no_auth) return "--isolate=principal requires authentication: with --no-auth there is one principal only";
  if (flags.memory_limit != 0) {
    return "--memory-limit counts the tensors of one process: with --isolate=principal use --worker-memory, or limits "
           "of principals";
  }
  if (flags.worker_memory != 0 && flags.worker_memory < kMinWorkerMemory) {
    return "--worker-memory must be at least 64MB";
  }
  return nullptr;
}

// The same for engines in which sessions are placed, and that place them.
const char* conflicting_placement(const Flags& flags) {
  if (!flags.placed_by.empty()) {
    if (flags.no_auth || flags.private_engine) return "--placed-by requires authentication";
    if (flags.isolates()) return "--placed-by has no effect with --isolate: a client follows one redirect only";
  }
  if (flags.engines.empty()) {
    return flags.engines_token_file.empty() && flags.engines_ca.empty()
               ? nullptr
               : "--engines-token-file and --engines-ca require --engines";
  }
  if (flags.engines_token_file.empty()) return "--engines requires --engines-token-file";
  if (flags.no_auth || flags.private_engine) return "--engines requires authentication";
  if (flags.isolates() || !flags.placed_by.empty() || flags.memory_limit != 0 || flags.session_memory_limit != 0 ||
      !flags.checkpoint_root.empty() || !flags.peer_networks.empty()) {
    return "with --engines no session is opened here: give --isolate, --memory-limit, --session-memory-limit, "
           "--checkpoint-root, --peer-networks and --placed-by to those engines";
  }
  const bool tls = flags.tls_self_signed || !flags.tls.certificate.empty();
  for (const std::string& text : flags.engines) {
    const absl::StatusOr<RemoteEngines::Engine> engine = RemoteEngines::parse(text);
    if (!engine.ok() || engine->tls) continue;
    if (tls) return "with TLS, clients follow to engines with TLS only: --engines teletensors://HOST:PORT";
    const absl::StatusOr<Address> address = parse_address(engine->address);
    if (address.ok() && !address->is_local() && !flags.insecure) {
      return "an engine on another host requires TLS: use --engines teletensors://HOST:PORT; --insecure allows it "
             "without "
             "encryption";
    }
  }
  return nullptr;
}

// The same for tensors of idle sessions.
const char* conflicting_offload(const Flags& flags) {
  if (flags.offloads() && !flags.engines.empty()) {
    return "with --engines no session is opened here: give --offload-dir and --offload-after to those engines";
  }
  if (flags.offload_dir.empty() && (flags.offload_limit != 0 || flags.offload_principal_limit != 0)) {
    return "--offload-limit and --offload-principal-limit require --offload-dir";
  }
  return nullptr;
}

// The same for models.
const char* conflicting_models(const Flags& flags) {
  constexpr uint64_t kMinRequest = uint64_t{64} << 10, kMaxRequest = uint64_t{1} << 30;
  if (!flags.serves_models()) {
    return flags.models_open || flags.model_shared_memory || flags.model_memory != 0
               ? "--models-open, --model-shared-memory and --model-memory require --models"
               : nullptr;
  }
  if (flags.isolates() || !flags.engines.empty()) {
    return "--models has no effect with --isolate=principal or --engines: this process then computes nothing";
  }
  if (flags.model_request_limit < kMinRequest || flags.model_request_limit > kMaxRequest) {
    return "--model-request-limit must be from 64KB to 1GB";
  }
  return nullptr;
}

// Checks that involve several options.
const char* conflicting_flags(const Flags& flags) {
  const bool tls = flags.tls_self_signed || !flags.tls.certificate.empty();
  if (!flags.principals.empty() && (flags.no_auth || flags.private_engine)) {
    return "--principals has no effect with --no-auth or --private";
  }
  if (!flags.http.empty() && flags.private_engine) return "--http has no effect with --private";
  if (flags.otlp.empty() &&
      (flags.otlp_ratio != Flags().otlp_ratio || flags.otlp_slow_seconds != Flags().otlp_slow_seconds)) {
    return "--otlp-ratio and --otlp-slow require --otlp";
  }
  if (!flags.otlp_ca.empty() && flags.otlp.rfind("https://", 0) != 0) return "--otlp-ca requires --otlp https://...";
  if (flags.tls.certificate.empty() != flags.tls.key.empty()) return "--tls-cert and --tls-key require each other";
  if (flags.tls_self_signed && !flags.tls.certificate.empty()) return "use --tls-self-signed or --tls-cert, not both";
  if (!flags.tls_dir.empty() && !flags.tls_self_signed) return "--tls-dir requires --tls-self-signed";
  if (!flags.tls.authorities.empty() && !tls) return "--tls-client-ca requires --tls-cert or --tls-self-signed";
  if (!flags.tls.revocations.empty() && flags.tls.authorities.empty())
    return "--tls-client-crl requires --tls-client-ca";
  if (!flags.tls_peer_ca.empty() && flags.tls.certificate.empty()) return "--tls-peer-ca requires --tls-cert";
  if (!allows_network(flags) && reaches_network(flags)) return kReachable;
  if (const char* why = conflicting_isolation(flags)) return why;
  if (const char* why = conflicting_placement(flags)) return why;
  if (const char* why = conflicting_offload(flags)) return why;
  if (const char* why = conflicting_models(flags)) return why;
  if (!flags.operators.empty() && !flags.engines.empty()) {
    return "with --engines nothing is computed here: give --operators to those engines";
  }
  if (flags.is_worker()) return nullptr;
  if (!flags.private_engine) return flags.client_fd >= 0 ? "--client-fd requires --private" : nullptr;
  if (flags.listen.size() > 1) return "--private allows only one --listen address";
  if (!flags.listen.empty() && flags.listen[0].rfind("unix:", 0) != 0)
    return "--private requires a unix socket address";
  return nullptr;
}

}  // namespace

std::vector<std::string> default_addresses() { return {absl::StrCat("unix:", default_socket()), "127.0.0.1:7070"}; }

absl::Status check_inherited(const Flags& flags, const std::vector<Address>& addresses) {
  if (flags.private_engine && !addresses.empty()) {
    return absl::InvalidArgumentError("--private has no effect with sockets of a service manager (LISTEN_FDS)");
  }
  for (const Address& address : addresses) {
    if (flags.isolates() && address.is_unix()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot serve the service manager's socket ", address.to_string(),
          " with --isolate=principal: workers need sockets beside it that the same users can open; use --listen "
          "unix:PATH, or a socket with a TCP address"));
    }
    if (address.is_local() || allows_network(flags)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("cannot serve the service manager's socket ", address.to_string(), ": ", kReachable));
  }
  return absl::OkStatus();
}

std::optional<int> parse_flags(int argc, char** argv, Flags* flags) {
  CLI::App app{"teletensord: the teletensor engine"};
  app.get_formatter()->column_width(34);
  flags->token_file = default_file(UserFolder::kConfig, "token");
  add_options(app, flags);
  // A worker gets every option from its engine, which has read the environment.
  const bool is_worker =
      std::any_of(argv, argv + argc, [](const char* each) { return std::string("--worker") == each; });
  if (is_worker) {
    for (CLI::Option* option : app.get_options()) option->envname("");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (flags->admin_token_file.empty() && !flags->token_file.empty()) {
    flags->admin_token_file = flags->token_file.parent_path() / "admin-token";
  }
  if (const char* why = conflicting_flags(*flags)) {
    std::cerr << "teletensord: " << why << "\n";
    return 2;
  }
  if (flags->tls_self_signed && flags->tls.certificate.empty()) {
    const std::filesystem::path folder = flags->tls_dir.empty() ? flags->token_file.parent_path() : flags->tls_dir;
    if (!folder.empty() || !flags->token_file.empty()) {
      flags->tls.certificate = folder / "tls-cert.pem";
      flags->tls.key = folder / "tls-key.pem";
    }
  }
  if (flags->serves_models() && flags->model_cache.empty()) {
    flags->model_cache = default_file(UserFolder::kCache, "models");
  }
  if (const char* why = missing_folder(*flags)) {
    std::cerr << "teletensord: " << why << "\n";
    return 2;
  }
  if (flags->check_config) {
    std::cout << app.config_to_str(true);
    return 0;
  }
  return std::nullopt;
}

}  // namespace tt::server
