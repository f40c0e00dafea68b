// Acceptor: accepts the connections of the engine's listening sockets, with connection limits.
//
// Accepts connections itself and passes them to gRPC, because gRPC 1.51's listener has no limit and stops permanently
// when file descriptors run out. A connection is passed on after its peer has sent the HTTP/2 preface, or the hello of
// a TLS handshake, which a client does at once, so that silent peers take the place of nobody: they are closed after a
// short time, and before that the oldest gives way to a new connection. Connections are limited in total and per
// address; at a limit, a new connection replaces one that has not presented a token, first one that has sent nothing
// since its preface. Connections that have to wait are served newest first. Until a connection presents a token, it has
// a budget of bytes (http2_filter.h), because gRPC stores what arrives before a call's handler runs: megabytes for each
// of its calls. One that has sent more is closed if no token follows. Thread-safe; runs one thread.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/rpc/listening_sockets.h"

namespace tt::server {

class Acceptor {
 public:
  using Sink = grpc::experimental::ExternalConnectionAcceptor;
  // Where accepted connections go: those of unix sockets and of TCP without TLS, and those of TCP with TLS.
  struct Sinks {
    std::unique_ptr<Sink> plain;
    std::unique_ptr<Sink> tls;
  };

  // Accepts the connections of `sockets` after start(). `per_address` limits the number of TCP connections from one
  // address. `tls`: TCP connections use TLS. Check ok() before start().
  Acceptor(std::vector<ListeningSocket> sockets, size_t per_address, bool tls);
  ~Acceptor();  // calls stop()
  // RESOURCE_EXHAUSTED if there were no file descriptors for what watches the connections.
  absl::Status ok() const;

  // Starts passing accepted connections to `sinks`, until stop(). A sink that no connection uses may be null. `paused`:
  // not before resume().
  void start(Sinks sinks, bool paused = false);
  // While paused, connections wait in the kernel's queues. Returns when no connection is being accepted.
  void pause();
  void resume();
  // The listening sockets, in the constructor's order; valid until stop().
  const std::vector<ListeningSocket>& sockets() const { return sockets_; }
  // Stops accepting and closes the listening sockets. Idempotent.
  void stop();

  // Reports that a call of `peer` (gRPC's format) presented a valid token. Its connection is then never replaced.
  void authenticated(const std::string& peer);
  // Reports a refused call of `peer`. A connection with many refused calls is closed, and later ones from its address
  // wait.
  void refused(const std::string& peer);
  size_t size();

 private:
  using Clock = std::chrono::steady_clock;
  // gRPC owns the descriptor. The inode shows whether the descriptor still refers to the same socket.
  struct Connection {
    int fd;
    uint64_t inode;
    std::string address;
    Clock::time_point accepted;
    bool authenticated = false;
    bool tls = false;
    uint64_t first_bytes = 0;           // received before the connection was passed to gRPC
    Clock::time_point bytes_since{};    // start of the interval in which the bytes are limited, without a token
    uint64_t bytes_before = 0;          // received before that interval
    Clock::time_point excess{};         // when they exceeded the limit
    Clock::time_point refused_since{};  // start of the interval of one second in which `refusals` are counted
    int refusals = 0;
  };

  using Connections = absl::flat_hash_map<std::string, Connection>;

  // An accepted connection that has not been passed to gRPC yet.
  struct Waiting {
    int fd;
    int listener_fd;
    std::string peer;
    std::string address;
    Clock::time_point since;
    bool tls;
  };
  // Connections from one address: all, and without a token those that have sent more than their preface, and others.
  struct Counts {
    size_t all = 0, calling = 0, silent = 0;
  };
  enum class Admission { kAdmit, kWait, kRefused };

  // What a client sends first: the HTTP/2 preface, or with TLS its hello.
  enum class Preface { kComplete, kIncomplete, kInvalid };

  void run();
  bool accept_one(const ListeningSocket& socket);
  static Preface preface_of(int fd, bool tls);
  void add_silent(Waiting connection);
  void read_prefaces();
  void close_silent(std::list<Waiting>::iterator at);
  void limit_bytes();
  void close_for_abuse(Connections::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void count_bytes(Connection& connection);
  bool serves(const std::string& address);
  void receive(Waiting connection);
  void serve_waiting();
  bool pass_to_grpc(const Waiting& connection);
  Admission admit(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool make_room(const std::string* address, bool among_calling = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void shut_down(const Connection& connection);
  void sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool is_silent(const Connection& connection);
  Counts count(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t per_address_;
  const size_t total_;
  std::vector<ListeningSocket> sockets_;
  const bool tls_;
  const int wake_;     // an eventfd
  const int silent_;   // an epoll descriptor for silent_connections_
  const int calling_;  // an epoll descriptor for connections of gRPC that have presented no token
  Sinks sinks_;
  std::thread thread_;
  Mutex accepting_;  // held while connections are accepted
  bool paused_ ABSL_GUARDED_BY(accepting_) = false;
  // Used by thread_ only, the oldest first: connections whose preface is incomplete, and those that wait for a place.
  std::list<Waiting> silent_connections_;
  absl::flat_hash_map<int, std::list<Waiting>::iterator> silent_by_fd_;
  std::vector<Waiting> waiting_;
  bool any_excess_ = false;  // a connection has exceeded its budget and is not closed yet

  Mutex mutex_;
  // The key is connection_of(peer), or "unix" and a number for unix sockets.
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t unix_connections_ ABSL_GUARDED_BY(mutex_) = 0;
  // For each address, the time until which new connections from it wait.
  absl::flat_hash_map<std::string, Clock::time_point> penalties_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
