// Flags: options of teletensord from the command line, TELETENSOR_* variables, or a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/certificate.h"
#include "server/rpc/address.h"

namespace tt::server {

struct Flags {
  std::vector<std::string> listen;  // addresses as given; empty: the default addresses
  std::string http;                 // address of the HTTP listener; empty: none
  std::filesystem::path token_file;
  std::filesystem::path admin_token_file;
  bool no_auth = false;
  TlsFiles tls;                      // of clients' connections; no certificate: without TLS
  bool tls_self_signed = false;      // create the certificate if there is none
  std::filesystem::path tls_dir;     // of the certificate that is created; empty: the token file's folder
  std::string tls_peer_ca;           // authorities of the other engines' certificates
  bool insecure = false;             // addresses beyond loopback may be without TLS
  std::filesystem::path principals;  // empty: only the two tokens
  std::filesystem::path audit_log;   // empty: none
  bool core_files = false;
  bool open_reflection = false;
  bool no_compression = false;
  std::vector<std::string> peer_networks;             // of the other engines; empty: none
  std::vector<std::string> peer_ports{"1024-65535"};  // of the other engines, and for listening
  size_t connections_per_address = 256;
  bool private_engine = false;
  int client_fd = -1;                      // pidfd of a private engine's client, readable once the client has ended
  uint64_t memory_limit = 0;               // bytes; 0: no limit
  uint64_t session_memory_limit = 0;       // bytes; 0: no limit
  std::vector<std::string> devices;        // device libraries, or folders of them
  std::string device_fallback = "on";      // or "off": operators without a kernel of the library fail
  uint64_t session_group_threads = 1'024;  // 0: no limit
  std::filesystem::path state_dir;         // of images of sessions; empty: none
  std::filesystem::path offload_dir;       // of tensors of idle sessions; empty: none
  double offload_after_seconds = -1;       // -1: 60 with a folder, else they stay
  bool offloads() const { return !offload_dir.empty() || offload_after_seconds >= 0; }
  uint64_t offload_limit = 0;             // bytes; 0: no limit
  uint64_t offload_principal_limit = 0;   // bytes; 0: no limit
  std::filesystem::path checkpoint_root;  // empty: no checkpoints, or the client's files for a private engine
  double lease_seconds = 60;
  double grace_seconds = 10;
  double frame_time_limit_seconds = 0;  // 0: no limit
  double profile_rate = 100;            // samples per second; 0: none
  int threads = 0;                      // 0: OMP_NUM_THREADS, or one per core
  std::string log_level = "info";
  std::string log_format = "text";  // or "json"
  std::string otlp;                 // collector of spans; empty: none
  std::string otlp_ca;              // authorities of its certificate; empty: the system's
  double otlp_ratio = 0.01;         // of the frames that become spans without a client's trace context
  double otlp_slow_seconds = 1;     // frames that take longer become spans
  bool check_config = false;

  std::filesystem::path operators;  // shared objects with operators; empty: none

  std::filesystem::path models;      // model repository; empty: none
  double model_poll_seconds = 2;     // 0: models are loaded at the start and by calls
  double model_load_timeout = 600;   // seconds
  bool models_open = false;          // inference requires no token
  bool model_shared_memory = false;  // clients on this host may use shared memory
  uint64_t model_memory = 0;         // bytes of all models; 0: no limit
  uint64_t model_request_limit = uint64_t{64} << 20;
  uint64_t model_inflight_limit = uint64_t{1} << 30;
  double model_send_timeout = 60;                      // seconds until a client takes an answer
  std::string model_converter = "teletensor convert";  // command, words separated by spaces
  std::filesystem::path model_cache;                   // of converted models; empty: the user's cache folder
  uint64_t model_cache_limit = uint64_t{64} << 30;     // bytes of it
  bool serves_models() const { return !models.empty(); }

  std::vector<std::string> engines;          // in which sessions are opened instead of here; empty: none
  std::filesystem::path engines_token_file;  // of the token by which they know this engine
  std::string engines_ca;                    // authorities of their certificates; empty: the system's
  std::string placed_by;                     // principal of the engine that opens sessions here; empty: none

  std::string isolate = "none";  // "principal": serve each principal in a worker process
  bool isolates() const { return isolate != "none"; }
  uint64_t worker_memory = 0;  // bytes; 0: no limit
  double worker_idle_seconds = 300;
  std::string worker_ports;  // "7100-7199"; empty: the system chooses
  // Of a worker, which its engine starts (server/daemon/worker_arguments.h).
  std::string worker;  // its principal; empty: not a worker
  bool worker_batch = false;
  bool is_worker() const { return !worker.empty(); }
};

// Parses the options. If the process should exit (--help, --version, an error), prints the help text, the version or
// the error and returns the exit code.
std::optional<int> parse_flags(int argc, char** argv, Flags* flags);

// Returns an error unless the options allow sockets at `addresses` that the daemon inherited.
absl::Status check_inherited(const Flags& flags, const std::vector<Address>& addresses);

// Returns "unix:.../teletensor/engine.sock" and "127.0.0.1:7070".
std::vector<std::string> default_addresses();

}  // namespace tt::server
