#include "server/daemon/flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "distributed/peers/peer_policy.h"
#include "proto/default_socket.h"
#include "server/rpc/address.h"
#include "server/version.h"

namespace tt::server {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path default_token_file() {
  std::string config = environment("XDG_CONFIG_HOME");
  std::filesystem::path home =
      config.empty() ? std::filesystem::path(environment("HOME")) / ".config" : std::filesystem::path(config);
  return home / "teletensor" / "token";
}

std::string address_error(std::string& text) { return std::string(parse_address(text).status().message()); }
std::string network_error(std::string& text) {
  return std::string(distributed::PeerPolicy::parse({text}, {}).status().message());
}
std::string ports_error(std::string& text) {
  return std::string(distributed::PeerPolicy::parse({}, {text}).status().message());
}

constexpr char kFooter[] = R"(
Every option can also be set by TELETENSOR_<OPTION> in the environment, or in a file with --config.

Examples:
  teletensord                               one engine for this user on this machine
  teletensord --listen 0.0.0.0:7070         reachable from the network (put it behind TLS or a VPN)
  teletensord --session-memory-limit 8GB    limit each client to 8 GB)";

void add_options(CLI::App& app, Flags* flags) {
  app.add_option("--listen", flags->listen, "unix:PATH or HOST:PORT; may be repeated")
      ->envname("TELETENSOR_LISTEN")
      ->delimiter(',')
      ->check(CLI::Validator(&address_error, "", "address"))
      ->type_name("ADDRESS")
      ->default_str(absl::StrCat(default_addresses()[0], " ", default_addresses()[1]));
  app.add_option("--token-file", flags->token_file, "token that clients need to open a session; created at first start")
      ->envname("TELETENSOR_TOKEN_FILE")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--admin-token-file", flags->admin_token_file,
                 "token for administrative calls; created at first start (default: admin-token beside --token-file)")
      ->envname("TELETENSOR_ADMIN_TOKEN_FILE")
      ->type_name("FILE");
  app.add_flag("--no-auth", flags->no_auth, "accept every client that can reach the engine")
      ->envname("TELETENSOR_NO_AUTH");
  app.add_flag("--private", flags->private_engine,
               "serve one client on a unix socket: print READY, exit when standard input ends");
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
  app.add_option(
         "--checkpoint-root", flags->checkpoint_root,
         "folder below which sessions may read and write checkpoints, in the subfolder user or admin, depending "
         "on the token; with --no-auth in the folder itself")
      ->envname("TELETENSOR_CHECKPOINT_ROOT")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
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
  app.add_flag("--check-config", flags->check_config, "check the configuration, print it, and exit");
  app.set_config("--config", "", "read options from this file (option = value)")->envname("TELETENSOR_CONFIG");
  app.set_version_flag("--version", absl::StrCat("teletensord ", kVersion));
  app.footer(kFooter);
}

// Checks that involve several options.
const char* conflicting_flags(const Flags& flags) {
  if (!flags.private_engine) return flags.client_fd >= 0 ? "--client-fd requires --private" : nullptr;
  if (flags.listen.size() > 1) return "--private allows only one --listen address";
  if (!flags.listen.empty() && flags.listen[0].rfind("unix:", 0) != 0)
    return "--private requires a unix socket address";
  return nullptr;
}

}  // namespace

std::vector<std::string> default_addresses() { return {absl::StrCat("unix:", default_socket()), "127.0.0.1:7070"}; }

std::optional<int> parse_flags(int argc, char** argv, Flags* flags) {
  CLI::App app{"teletensord: the teletensor engine"};
  app.get_formatter()->column_width(34);
  flags->token_file = default_token_file();
  add_options(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (flags->admin_token_file.empty()) flags->admin_token_file = flags->token_file.parent_path() / "admin-token";
  if (const char* why = conflicting_flags(*flags)) {
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
