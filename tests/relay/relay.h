// Relay: forwards connections to another address under the conditions of a network: delay, jitter, a limited rate,
// broken and silent connections. For tests and benchmarks.
//
// One thread forwards the bytes of all connections and suits some hundred connections. Thread-safe; no function waits
// for a connection. The constructor throws std::system_error or std::invalid_argument.
//
// Model of a direction. A chunk that was read from a connection first passes the bottleneck, which all connections of
// the direction share and which transmits `rate` bytes per second, then travels for `delay`. While `queue` or more of
// transmission time waits for the bottleneck, nothing is read, so further bytes wait in the sender's socket, and
// connections that wait are served in turn (as by a router with fair queueing). The bytes of one connection keep their
// order. Memory per connection and direction: at most what the link holds (rate times delay) and 4 MiB, or 64 MiB if
// the rate is unlimited; beyond that nothing is read from the connection.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace tt::relay {

enum Direction { kToTarget, kToClient, kDirections };

// Conditions of one direction. Times in seconds.
struct Conditions {
  double delay = 0;
  double jitter = 0;            // each chunk is delayed by up to this much more
  double connection_delay = 0;  // each connection is delayed by up to this much more: connections overtake each other
  double rate = 0;              // bytes per second; 0: unlimited
  double queue = 0.005;         // of the bottleneck, but at least 64 KiB
};

struct Options {
  std::string listen = "127.0.0.1:0";  // HOST:PORT with a numeric host, or unix:PATH; here and below
  std::string target;
  std::array<Conditions, kDirections> conditions;
  uint64_t seed = 0;  // of all random numbers
};

// Totals of one direction.
struct Traffic {
  uint64_t bytes = 0;   // read from the sender
  uint64_t chunks = 0;  // number of successful reads
};

class Relay {
 public:
  explicit Relay(Options options);
  ~Relay();  // breaks all connections
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // The address at which it listens, with the port that was chosen.
  const std::string& address() const { return address_; }

  // Breaks all connections. New ones are accepted.
  void cut();
  // Breaks all connections when `bytes` more bytes of a direction have been forwarded.
  void cut_after(Direction direction, uint64_t bytes);
  // Breaks all connections again and again, each time after 1 to 2 * `mean` bytes of both directions together; 0: no
  // longer.
  void cut_every(uint64_t mean);
  // Holds all bytes and the ends of connections until resume(), and accepts no connection. Nobody is notified:
  // connection attempts succeed, but are not answered.
  void stall();
  void resume();
  // Makes the existing connections silent for ever: their bytes are discarded, and neither side learns that the other
  // has closed. New connections are accepted.
  void lose();
  // Whether attempts to connect are refused, as if no process listened.
  void refuse(bool refused);

  uint64_t connections() const;  // number of connections that were accepted
  std::array<Traffic, kDirections> traffic() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Socket {
    int fd = -1;
    // As far as is known. epoll reports changes only.
    bool readable = false;
    bool writable = false;
    bool hung_up = false;
    bool ended = false;  // its end has been read
  };
  enum class End { kNone, kClosed, kBroken };  // how the source ended
  struct Chunk {
    Clock::time_point arrival;
    std::string bytes;
    End end = End::kNone;  // the last chunk has the end and no bytes
  };
  struct Pipe {
    std::deque<Chunk> chunks;
    size_t sent = 0;    // bytes of the first chunk that have been forwarded
    size_t queued = 0;  // bytes of all chunks
    Clock::time_point last_arrival;
    Clock::duration extra_delay{0};
    bool done = false;  // the end was forwarded
  };
  struct Connection {
    std::array<Socket, 2> sockets;  // the client's and the target's
    std::array<Pipe, kDirections> pipes;
    bool lost = false;
    bool dead = false;  // to be closed
  };
  struct Path {  // the state of a direction
    Conditions conditions;
    Clock::duration queue{0};
    Clock::time_point busy_until;  // the bottleneck
    Traffic traffic;
    uint64_t cut_after = 0;  // 0: never
  };

  void listen();
  void run();
  void accept_all() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void add_connection(int client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void watch(Socket& socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads, forwards and closes all connections that are ready. Returns the time of the next call.
  Clock::time_point progress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads one chunk. Returns false if there is none, or no room.
  bool receive(Connection& connection, int direction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool has_room(const Connection& connection, int direction, Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t read_size(int direction) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forwards the chunks that have arrived.
  void deliver(Connection& connection, int direction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void count_forwarded(int direction, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Clock::time_point next_event(const Connection& connection, Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void cut_all() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Clock::duration random_delay(double max) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void wake();

  const Options options_;
  std::string address_;
  int epoll_, timer_, wake_;

  mutable Mutex mutex_;
  int listener_ ABSL_GUARDED_BY(mutex_) = -1;
  bool acceptable_ ABSL_GUARDED_BY(mutex_) = false;  // connections may wait to be accepted
  std::array<Path, kDirections> paths_ ABSL_GUARDED_BY(mutex_);
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);  // in the order of service; removed by the thread only
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cut_mean_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cut_in_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes until the next cut of cut_every(); 0: never
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<char> buffer_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tt::relay
