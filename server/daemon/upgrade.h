// Upgrade: replaces the daemon's process by a new one that runs the program as it is installed now, and passes the
// listening sockets and every session to it. Takeover is the new process's part.
//
// The old process starts the new one with its own arguments, the listening sockets and two pipes. The new one prepares
// to serve, obtains as much memory as the old one has in use (prepared_memory.h), and reports that it is ready; until
// then nothing has changed for the clients. Then the old one stops
// accepting connections, holds every session between two frames (Session::hold), and writes their images to the first
// pipe (image_pipe.h). The new one answers each image on the second pipe. After the last one the old process tells the
// new one to serve, and exits, which breaks its connections: clients reconnect and resume. The kernel keeps connections
// that arrive in between in the queues of the listening sockets. If anything fails before that, the new process is
// killed and the sessions continue in the old one.
//
// The pipes, like the environment, are inherited by the new process only; no image is accepted from anywhere else.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "server/daemon/listener.h"
#include "server/daemon/service_manager.h"
#include "server/rpc/auth.h"
#include "server/rpc/inherited_sockets.h"
#include "server/session/sessions.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

// Thread-safe.
class Upgrade {
 public:
  struct Options {
    std::vector<std::string> command;              // the program's path and its arguments
    std::string refusal;                           // why this daemon cannot be upgraded; empty: it can
    std::chrono::milliseconds start_time{60'000};  // for the new process to become ready
    std::function<std::string()> served{};         // the models that are served (served_models()); empty: none
    std::vector<int> http{};                       // the listening sockets of HTTP
  };

  // All references must outlive this object. `exit` requests this process to end.
  Upgrade(Options options, Sessions& sessions, Listener& listener, const ServiceManager& manager,
          std::function<void()> exit)
      : options_(std::move(options)),
        sessions_(sessions),
        listener_(listener),
        manager_(manager),
        exit_(std::move(exit)) {}

  // FAILED_PRECONDITION, with the reasons, if the process cannot be replaced. After a success this process must exit
  // soon without touching the sessions, whose owner is the new process.
  absl::StatusOr<v1::UpgradeReply> run(const v1::UpgradeRequest& request);
  bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  class Successor;
  absl::StatusOr<v1::UpgradeReply> run_once(const v1::UpgradeRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Sessions& sessions_;
  Listener& listener_;
  const ServiceManager& manager_;
  const std::function<void()> exit_;
  Mutex mutex_;
  std::atomic<bool> done_{false};
};

class Takeover {
 public:
  // Takes what the old process has passed on; null if this process replaces none. Call once, before the process opens
  // descriptors.
  static absl::StatusOr<std::unique_ptr<Takeover>> from_environment();
  std::vector<InheritedSocket> take_sockets() { return std::move(sockets_); }
  std::vector<InheritedSocket> take_http_sockets() { return std::move(http_sockets_); }
  // The models that the old process serves, as served_models() returned them.
  const std::string& served() const { return served_; }
  // Reports that this process is ready, receives the sessions, and returns when it has to serve them. On an error the
  // process must exit: the old one continues.
  // `prepare` is called first; with an error the old process continues.
  absl::Status run(Sessions& sessions, const Auth& auth, absl::FunctionRef<absl::Status()> prepare);

 private:
  Takeover() = default;
  FileDescriptor images_, answers_;
  std::vector<InheritedSocket> sockets_, http_sockets_;
  std::string memory_;     // what the old process had in use (prepared_memory.h)
  std::string served_;     // models
  std::string operators_;  // that the old process had loaded (operator_folder.h)
};

}  // namespace tt::server
