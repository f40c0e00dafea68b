// HttpConnections: the connections of the HTTP listener.
//
// One thread accepts connections, receives requests and sends answers, and never waits for a peer: a slow or silent one
// occupies a connection until its time has passed, but no thread. Two further threads compute the answers, so that a
// device whose state takes long does not delay a probe, which is answered at once. A request consists of a line and
// headers; a connection is closed after its answer, unless that has the header `Connection: keep-alive`. Limits: the
// size of the headers, the time of each step, the connections in total and per address, and the bytes of answers that
// wait for their peers. At a limit of connections a new one replaces the oldest whose request is incomplete, of the
// address that has most. A request may have a body if its headers are admitted: of a known length, and within a limit
// of all bodies together. Such requests have threads of their own, because they may take long: as many as there are
// requests, so that those that wait for something do not delay others. Their connections may stay open for further
// ones.
//
// cpp-httplib's own listener (0.11.4) has none of these limits: each connection occupies one of its threads, the length
// of a line is not limited, and it stops for good when accept() fails.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "server/http/tls.h"
#include "server/rpc/address.h"
#include "server/rpc/listening_sockets.h"

namespace tt::server {

class HttpConnections {
 public:
  // The bytes of an answer, and what is kept until they have been sent or the connection is closed, such as the count
  // of their memory.
  struct Reply {
    std::string bytes;
    std::shared_ptr<void> kept = nullptr;
  };
  // Returns the answer to a request: its line and headers with the empty line. `peer` is in gRPC's format.
  // `is_cancelled` says, until the answer is returned, whether it is in vain: the peer has closed the connection, or
  // the half of it on which it sends, or the object is being destroyed. Several threads call it. An empty answer closes
  // the connection.
  using Answer = std::function<Reply(const std::string& request, const std::string& peer,
                                     const std::function<bool()>& is_cancelled)>;
  struct Options {
    size_t connections = 256;
    size_t per_address = 32;  // address_of() defines which peers have the same
    size_t request_bytes = 8192;
    // Of all answers; more requests get the status 503. One address may have half of this and of body_bytes.
    size_t waiting_bytes = size_t{32} << 20;
    std::chrono::milliseconds receive_timeout{5'000};  // from accept() to the end of the headers
    std::chrono::milliseconds send_timeout{20'000};    // of the answer, by which it may be later than body_rate
    std::chrono::milliseconds discard_timeout{1'000};  // until the peer closes the connection after the answer
    std::chrono::milliseconds body_timeout{60'000};    // from the end of the headers to that of the body
    std::chrono::milliseconds body_delay{10'000};      // by which a body may be later than body_rate
    size_t body_rate = size_t{64} << 10;             // bytes per second of a body, which occupies body_bytes meanwhile
    std::chrono::milliseconds idle_timeout{60'000};  // from an answer to the next request
    size_t body_bytes = size_t{256} << 20;           // of all requests; more get the status 503
    int body_threads = 0;                            // that answer requests with bodies; 0: those with few threads do
    int max_body_threads = 0;                        // with those that are started while all others are busy
    std::chrono::milliseconds thread_idle{10'000};   // until one of those ends
  };
  // What to do with a request and its body, by its line and headers, which must not take long.
  struct Body {
    std::string refusal;          // bytes of an answer to send instead of reading the body; empty: none
    size_t bytes = 0;             // of the body to read; 0: what follows the headers is discarded
    bool is_slow = false;         // the request is answered by one of the threads for bodies
    bool wants_continue = false;  // the peer waits for the status 100
  };
  // `certified`: the client has presented a certificate, or the listener does not require one.
  using Admit = std::function<Body(absl::string_view head, const std::string& peer, bool certified)>;

  // Listens on a TCP address and replaces its port 0; with `inherited`, on these sockets of the address instead. `tls`
  // may be null: without TLS. `is_quick` selects requests that are answered at once, on the thread that serves all
  // connections: their answers must not wait.
  static absl::StatusOr<std::unique_ptr<HttpConnections>> start(Address* address, std::unique_ptr<HttpTls> tls,
                                                                const Options& options, Answer answer,
                                                                std::function<bool(absl::string_view)> is_quick,
                                                                Admit admit = {},
                                                                std::vector<ListeningSocket> inherited = {});
  ~HttpConnections();  // closes all connections
  // The listening sockets. Valid until the object is destroyed.
  std::vector<int> sockets() const;
  // Accepts no more connections, closes each after its next answer, and returns when there are none, or after `idle`
  // when no request is being received or answered, or after `timeout`.
  void finish(std::chrono::milliseconds idle, std::chrono::milliseconds timeout);
  HttpConnections(const HttpConnections&) = delete;
  HttpConnections& operator=(const HttpConnections&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Step { kReceive, kAnswer, kSend, kDiscard };
  struct Connection {
    FileDescriptor fd;
    SslPointer ssl;  // null: without TLS
    std::string peer;
    std::string address;
    Clock::time_point deadline;
    Clock::time_point body_begin;
    Step step = Step::kReceive;
    bool watched = false;  // by epoll_
    std::string text;      // the request received so far, then the answer
    size_t expected = 0;   // bytes of the request, known once its headers are complete
    size_t reserved = 0;   // bytes of body_bytes_
    bool is_slow = false;
    bool has_more = false;                 // something was received after the request
    bool stays_open = false;               // after the answer
    std::shared_ptr<void> kept = nullptr;  // with the answer
    size_t moved = 0;                      // bytes of the answer that were sent, then bytes that were discarded
  };
  struct Job {
    uint64_t connection;
    std::string request;
    std::string peer;
    int fd;  // of the connection, which is not closed before its answer
  };
  struct Result {
    uint64_t connection;
    Reply answer;
  };
  // Memory of all connections, by address.
  struct Bytes {
    size_t all = 0;
    absl::flat_hash_map<std::string, size_t> of_address = {};
    // Whether there is room for more, of one address in half of the limit unless it has none yet.
    bool has_room(const std::string& address, size_t bytes, size_t limit) const;
    void add(const std::string& address, size_t bytes);
    void remove(const std::string& address, size_t bytes);
  };
  // Of a step: it can be continued at once, after an event, or the connection has to be closed.
  enum class Progress { kAgain, kLater, kClosed };

  HttpConnections(std::vector<ListeningSocket> listeners, std::unique_ptr<HttpTls> tls, const Options& options,
                  Answer answer, std::function<bool(absl::string_view)> is_quick, Admit admit);
  // Of the serving thread:
  void serve();
  void accept_some(int listener);
  bool accept_one(int listener);
  bool make_room(const std::string& address);
  void listen_again(bool on);
  void watch(int operation, int fd, uint64_t id, uint32_t events);
  void advance(uint64_t id);
  Progress receive_request(uint64_t id, Connection& connection, uint32_t* events);
  // Examines complete headers of `size` bytes.
  Progress receive_body(uint64_t id, Connection& connection, size_t size);
  void set_body_deadline(Connection& connection) const;
  Progress next_request(Connection& connection);
  Progress answer_request(uint64_t id, Connection& connection);
  Progress begin_answer(Connection& connection, Reply answer);
  Progress send_answer(Connection& connection, uint32_t* events);
  Progress discard(Connection& connection, uint32_t* events);
  void collect_results();
  void close_overdue();
  void count_connections();
  int milliseconds_left() const;
  void close(uint64_t id);
  // Starts a thread if requests with bodies wait for one, and joins those that have ended.
  void start_thread();
  void join_ended_threads();
  // Of the computing threads:
  void compute(bool is_slow);
  // Computes requests with bodies until there was none for a while.
  void compute_more(std::list<std::thread>::iterator own);
  // Answers the first request of `jobs`.
  void compute_one(std::deque<Job>* jobs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool is_cancelled(int fd);

  const Options options_;
  const Answer answer_;
  const std::function<bool(absl::string_view)> is_quick_;
  const Admit admit_;
  // Used by the serving thread only.
  std::vector<FileDescriptor> listeners_;
  std::unique_ptr<HttpTls> tls_;
  std::map<uint64_t, Connection> connections_;  // by number: the oldest first
  uint64_t last_ = 0;
  Bytes answers_, bodies_;
  bool paused_ = false;  // no connections are accepted until pause_end_, because descriptors or memory have run out
  Clock::time_point pause_end_{};

  FileDescriptor epoll_;
  FileDescriptor wake_;  // an eventfd: a result is ready, or the object is being destroyed
  Mutex mutex_;
  CondVar changed_, slow_changed_, more_changed_;  // the last: for more_threads_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> finishing_{false};
  bool is_finishing_ = false;              // of the serving thread
  std::atomic<size_t> open_{0}, busy_{0};  // connections; those with a request
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_), slow_jobs_ ABSL_GUARDED_BY(mutex_);  // at most one per connection
  std::vector<Result> results_ ABSL_GUARDED_BY(mutex_);
  // Threads for bodies that wait for a request, or that have just been started: of body_threads, and beyond.
  int idle_slow_ ABSL_GUARDED_BY(mutex_), idle_more_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<std::thread> more_threads_ ABSL_GUARDED_BY(mutex_);  // beyond body_threads
  std::list<std::thread> ended_threads_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace tt::server
