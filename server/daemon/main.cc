// teletensord: builds the daemon from its parts.
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/mutex.h"
#include "distributed/peers/peer_policy.h"
#include "engine/device/failed_check.h"
#include "server/checkpoint/root.h"
#include "server/daemon/backends.h"
#include "server/daemon/environment.h"
#include "server/daemon/flags.h"
#include "server/daemon/listener.h"
#include "server/daemon/private_folder.h"
#include "server/daemon/shutdown_signal.h"
#include "server/log.h"
#include "server/rpc/address.h"
#include "server/rpc/auth.h"
#include "server/rpc/peer_gate.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

int print_error(const absl::Status& status) {
  std::cerr << "teletensord: " << status.message() << std::endl;
  return 1;
}

absl::StatusOr<std::vector<Address>> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<Address> addresses;
  for (const std::string& text : texts) {
    absl::StatusOr<Address> address = parse_address(text);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  return addresses;
}

absl::StatusOr<Auth> make_auth(const Flags& flags) {
  // A private engine's socket is in a folder that only its owner can enter.
  if (flags.no_auth || flags.private_engine) return Auth::disabled();
  return Auth::from_files(flags.token_file, flags.admin_token_file);
}

void log_addresses(const Flags& flags, const Listener& listener) {
  std::vector<std::string> names;
  for (const Address& address : listener.addresses()) {
    names.push_back(address.to_string());
    if (!address.is_local()) {
      spdlog::warn("{} is reachable from the network; tokens and tensors are sent unencrypted", names.back());
    }
  }
  if (flags.private_engine) {
    std::cout << "READY " << names[0] << std::endl;
  } else {
    spdlog::info("teletensord {} listening on {}{}", kVersion, absl::StrJoin(names, " and "),
                 flags.no_auth ? ", without authentication"
                               : absl::StrCat("; the user token is in ", flags.token_file.native(),
                                              ", the admin token in ", flags.admin_token_file.native()));
  }
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// Returns the folder for each principal's checkpoints.
std::function<std::shared_ptr<const CheckpointRoot>(absl::string_view)> checkpoint_roots(const Flags& flags) {
  if (!flags.checkpoint_root.empty()) {
    const std::string folder = std::filesystem::absolute(flags.checkpoint_root).lexically_normal();
    const bool is_shared = !flags.private_engine && !flags.no_auth;
    return [=](absl::string_view principal) {
      return std::make_shared<const CheckpointRoot>(folder, is_shared ? std::string(principal) : "");
    };
  }
  if (!flags.private_engine) return {};
  // a private engine runs as the user of its only client
  return [](absl::string_view) { return CheckpointRoot::unrestricted(); };
}

// Returns the engines with which sessions may communicate.
absl::StatusOr<distributed::PeerPolicy> peer_policy(const Flags& flags) {
  if (flags.private_engine && flags.peer_networks.empty()) return distributed::PeerPolicy::any();
  return distributed::PeerPolicy::parse(flags.peer_networks, flags.peer_ports);
}

// Exits the process after `grace`, even if work (a library call, a device) is still running; the system frees its
// memory.
class GracePeriod {
 public:
  GracePeriod(std::chrono::milliseconds grace, std::function<void()> remove_files)
      : thread_([this, grace, remove_files] {
          MutexLock lock(mutex_);
          if (over_.wait_for(mutex_, grace, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; })) return;
          spdlog::warn("work was still running at the end of the grace period; exiting without waiting for it");
          remove_files();
          _exit(0);
        }) {}
  ~GracePeriod() {
    {
      MutexLock lock(mutex_);
      done_ = true;
      over_.notify_all();
    }
    thread_.join();
  }
  GracePeriod(const GracePeriod&) = delete;
  GracePeriod& operator=(const GracePeriod&) = delete;

 private:
  Mutex mutex_;
  CondVar over_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Runs the daemon until it is shut down and returns the exit code. `folder` may be null. If the process exits inside
// this function, the folder is removed first.
int serve(const Flags& flags, const std::vector<std::string>& listen, PrivateFolder* folder) {
  absl::StatusOr<std::vector<Address>> addresses = parse_addresses(listen);
  if (!addresses.ok()) return print_error(addresses.status());
  absl::StatusOr<Auth> auth = make_auth(flags);
  if (!auth.ok()) return print_error(auth.status());
  recover_from_failed_checks();
  ShutdownWaiter shutdown;
  register_backends(flags.threads, flags.memory_limit);
  Sessions::Options options;
  options.session_memory_limit = flags.session_memory_limit;
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
  Sessions sessions(options);
  Listener::Options listening{*addresses, flags.open_reflection, flags.connections_per_address, flags.profile_rate};
  auto listener = Listener::start(listening, *auth, sessions, [&shutdown] { shutdown.end(); });
  if (!listener.ok()) return print_error(listener.status());
  log_addresses(flags, **listener);
  const char* reason = shutdown.wait(flags.private_engine, flags.client_fd);
  spdlog::info("shutting down: {}", reason);
  const auto remove_files = [&] {
    (*listener)->remove_sockets();
    if (folder) folder->remove();
  };
  if (shutdown.client_exited()) {  // no client waits for running work
    remove_files();
    spdlog::default_logger()->flush();
    _exit(0);
  }
  const std::chrono::milliseconds grace = milliseconds(flags.grace_seconds);
  const GracePeriod deadline(grace, remove_files);
  // A private engine ends with its client, so no client waits for its frames.
  (*listener)->shut_down(flags.private_engine ? std::chrono::milliseconds(0) : grace / 2);
  return 0;
}

int run(int argc, char** argv) {
  Flags flags;
  if (std::optional<int> code = parse_flags(argc, argv, &flags)) return *code;
  start_log(flags.private_engine && flags.log_level == "info" ? "warn" : flags.log_level);
  umask(0077);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that exceeds a size limit is the error of its write
  // Keep transfer buffers in the heap when freed, instead of faulting their pages in again.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  // Each malloc arena keeps memory that its threads freed. With several arenas, one session's frames retained up to 38
  // MiB (tests/server/daemon/exhaustion_test.cc).
  mallopt(M_ARENA_MAX, 1);
  std::unique_ptr<PrivateFolder> folder;
  std::vector<std::string> listen = flags.listen;
  if (listen.empty() && flags.private_engine) {
    auto made = PrivateFolder::make();
    if (!made.ok()) return print_error(made.status());
    folder = *std::move(made);
    listen = {folder->address()};
  }
  if (listen.empty()) listen = default_addresses();
  return serve(flags, listen, folder.get());
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
