#include "server/daemon/worker_arguments.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tt::server {
namespace {

std::vector<std::string> arguments_of(const Flags& flags) {
  std::vector<std::string> arguments;
  const auto set = [&](const char* option, const auto& value) {
    arguments.push_back(option);
    arguments.push_back(absl::StrCat(value));
  };
  const auto set_path = [&](const char* option, const std::string& value) {
    if (!value.empty()) set(option, value);
  };
  const auto set_flag = [&](const char* option, bool value) {
    if (value) arguments.push_back(option);
  };
  set("--worker-memory", flags.worker_memory);
  set("--session-memory-limit", flags.session_memory_limit);
  set_path("--devices", absl::StrJoin(flags.devices, ","));
  set("--device-fallback", flags.device_fallback);
  set("--session-group-threads", flags.session_group_threads);
  set("--lease", flags.lease_seconds);
  set("--grace", flags.grace_seconds);
  set("--frame-time-limit", flags.frame_time_limit_seconds);
  set("--profile-rate", flags.profile_rate);
  set("--threads", flags.threads);
  set("--log-level", flags.log_level);
  set("--log-format", flags.log_format);
  set("--connections-per-address", flags.connections_per_address);
  set_path("--audit-log", flags.audit_log.native());
  set_path("--checkpoint-root", flags.checkpoint_root.native());
  set_path("--operators", flags.operators.native());
  if (!flags.offload_dir.empty()) {
    set("--offload-dir", flags.offload_dir.native());
    set("--offload-limit", flags.offload_limit);
    set("--offload-principal-limit", flags.offload_principal_limit);
  }
  if (flags.offload_after_seconds >= 0) set("--offload-after", flags.offload_after_seconds);
  set_path("--tls-cert", flags.tls.certificate);
  set_path("--tls-key", flags.tls.key);
  set_path("--tls-client-ca", flags.tls.authorities);
  set_path("--tls-client-crl", flags.tls.revocations);
  set_path("--tls-peer-ca", flags.tls_peer_ca);
  set_path("--peer-networks", absl::StrJoin(flags.peer_networks, ","));
  set_path("--peer-ports", absl::StrJoin(flags.peer_ports, ","));
  if (!flags.otlp.empty()) {
    set("--otlp", flags.otlp);
    set_path("--otlp-ca", flags.otlp_ca);
    set("--otlp-ratio", flags.otlp_ratio);
    set("--otlp-slow", flags.otlp_slow_seconds);
  }
  set_flag("--no-compression", flags.no_compression);
  set_flag("--open-reflection", flags.open_reflection);
  set_flag("--insecure", true);  // the engine has checked its addresses, which are the workers'
  return arguments;
}

}  // namespace

Workers::Options worker_options(const Flags& flags, const std::vector<Address>& addresses) {
  Workers::Options options;
  options.arguments = arguments_of(flags);
  for (const Address& address : addresses) {
    if (!address.is_unix()) {
      options.hosts.push_back(address.host);
    } else if (options.socket.empty()) {
      options.socket = address.path;
    }
  }
  options.ports = PortRange::parse(flags.worker_ports).value();  // checked with the options
  options.idle = std::chrono::milliseconds(static_cast<int64_t>(1000 * flags.worker_idle_seconds));
  options.grace = std::chrono::milliseconds(static_cast<int64_t>(1000 * flags.grace_seconds));
  return options;
}

}  // namespace tt::server
