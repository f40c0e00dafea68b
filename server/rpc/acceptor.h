// Acceptor: the engine's listening sockets, and how many connections it takes.
//
// Accepts connections itself and hands them to gRPC, whose own listener in 1.51 has no limit and stops for good when
// file descriptors run out. Connections are limited in all and for each address; where a limit is reached, a connection
// on which no call has shown a token yet makes room for the new one. Thread-safe; one thread of its own.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/rpc/address.h"

namespace tt::server {

class Acceptor {
 public:
  using Sink = grpc::experimental::ExternalConnectionAcceptor;

  // Binds and listens on every address; `addresses` then has the ports that 0 stood for. Fails, in one clear line,
  // where that is not possible. `per_address` bounds TCP connections from one address.
  static absl::StatusOr<std::unique_ptr<Acceptor>> listen(std::vector<Address>* addresses, size_t per_address);
  ~Acceptor();  // stops

  // Hands connections to `sink` from now on, which accepts them until stop().
  void start(std::unique_ptr<Sink> sink);
  // Accepts nothing more and closes the listening sockets. Idempotent.
  void stop();

  // A call on the connection of `peer`, as gRPC names it, has shown a token: the connection is not closed for another.
  void authenticated(const std::string& peer);
  // A call on that connection was refused. One that goes on calling is closed, and its address' next ones wait a while.
  void refused(const std::string& peer);
  size_t size();

 private:
  using Clock = std::chrono::steady_clock;
  struct Listener {
    int fd;
    bool is_unix;
  };
  // gRPC owns the descriptor. The socket's inode tells whether the number still stands for it.
  struct Connection {
    int fd;
    uint64_t inode;
    std::string address;
    Clock::time_point accepted;
    bool authenticated = false;
    Clock::time_point refused_since{};  // the start of the second that `refusals` counts
    int refusals = 0;
  };

  // An accepted connection that gRPC has not been given yet.
  struct Waiting {
    int fd;
    int listener_fd;
    std::string peer;
    std::string address;
    Clock::time_point since;
  };
  enum class Verdict { kWelcome, kWait, kRefused };

  Acceptor(size_t per_address, std::vector<Listener> listeners);
  void run();
  bool accept_one(const Listener& listener);
  void receive(Waiting connection);
  void serve_waiting();
  bool hand_over(const Waiting& connection);
  Verdict admit(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool make_room(const std::string* address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void shut(const Connection& connection);
  void sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t count(const std::string& address, bool only_unauthenticated) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t per_address_;
  const size_t total_;
  std::vector<Listener> listeners_;
  const int wake_;  // an eventfd
  std::unique_ptr<Sink> sink_;
  std::thread thread_;
  std::vector<Waiting> waiting_;  // the thread's alone

  Mutex mutex_;
  // By connection_of(peer), or a number for unix sockets.
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t unix_connections_ ABSL_GUARDED_BY(mutex_) = 0;
  // Until when an address' connections wait.
  absl::flat_hash_map<std::string, Clock::time_point> penalties_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
