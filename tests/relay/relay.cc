#include "tests/relay/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tt::relay {
namespace {

using namespace std::chrono_literals;

constexpr size_t kReadBytes = size_t{256} << 10;
constexpr size_t kMinReadBytes = size_t{16} << 10;
constexpr double kReadSeconds = 0.001;  // transmission time of the largest chunk
constexpr size_t kMinQueueBytes = size_t{64} << 10;
constexpr size_t kPipeBytes = size_t{4} << 20;            // beyond rate times delay
constexpr size_t kUnlimitedPipeBytes = size_t{64} << 20;  // if the rate is unlimited
constexpr int kReadsPerTurn = 8;                          // of a connection, if the rate is unlimited

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Name {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_un local;
  };
  socklen_t size;
};

Name parse(const std::string& address) {
  Name name{};
  if (address.rfind("unix:", 0) == 0) {
    const std::string path = address.substr(5);
    if (path.empty() || path.size() >= sizeof name.local.sun_path) {
      throw std::invalid_argument("expected a path of 1 to 107 characters after unix:, got '" + path + "'");
    }
    name.local.sun_family = AF_UNIX;
    path.copy(name.local.sun_path, path.size());
    name.size = sizeof name.local;
    return name;
  }
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  name.v4.sin_family = AF_INET;
  name.size = sizeof name.v4;
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(port) > 65535 || inet_pton(AF_INET, host.c_str(), &name.v4.sin_addr) != 1) {
    throw std::invalid_argument("expected unix:PATH or IPV4:PORT, got '" + address + "'");
  }
  name.v4.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
  return name;
}

int open_socket(const Name& name) {
  const int fd = socket(name.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) throw_errno("socket");
  return fd;
}

void send_at_once(int fd) {  // has no effect on a unix socket
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Relay::Relay(Options options)
    : options_(std::move(options)),
      address_(options_.listen),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      random_(options_.seed),
      buffer_(kReadBytes) {
  parse(options_.target);  // throws if it is malformed
  MutexLock lock(mutex_);
  for (int d = 0; d < kDirections; ++d) {
    Path& path = paths_[d];
    path.conditions = options_.conditions[d];
    const Conditions& c = path.conditions;
    if (c.rate > 0) path.queue = duration(std::max(c.queue, kMinQueueBytes / c.rate));
  }
  for (int* fd : {&timer_, &wake_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, *fd, &event) != 0) throw_errno("epoll_ctl");
  }
  listen();
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  MutexLock lock(mutex_);
  for (Connection& connection : connections_) {
    for (Socket& socket : connection.sockets) close(socket.fd);
  }
  if (listener_ >= 0) close(listener_);
  for (int fd : {epoll_, timer_, wake_}) close(fd);
  if (address_.rfind("unix:", 0) == 0) unlink(address_.c_str() + 5);
}

void Relay::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

// ---- Controls

void Relay::cut_all() {
  cut_in_ = cut_mean_ == 0 ? 0 : std::uniform_int_distribution<uint64_t>(1, 2 * cut_mean_)(random_);
  for (Connection& connection : connections_) {
    connection.dead = true;
    for (Socket& socket : connection.sockets) ::shutdown(socket.fd, SHUT_RDWR);
  }
}

void Relay::cut() {
  {
    MutexLock lock(mutex_);
    cut_all();
  }
  wake();
}

void Relay::cut_after(Direction direction, uint64_t bytes) {
  MutexLock lock(mutex_);
  paths_[direction].cut_after = bytes;
}

void Relay::cut_every(uint64_t mean) {
  MutexLock lock(mutex_);
  cut_mean_ = mean;
  cut_in_ = mean == 0 ? 0 : std::uniform_int_distribution<uint64_t>(1, 2 * mean)(random_);
}

void Relay::stall() {
  MutexLock lock(mutex_);
  stalled_ = true;
}

void Relay::resume() {
  {
    MutexLock lock(mutex_);
    stalled_ = false;
  }
  wake();
}

void Relay::lose() {
  {
    MutexLock lock(mutex_);
    for (Connection& connection : connections_) {
      connection.lost = true;
      for (Pipe& pipe : connection.pipes) pipe = {};
    }
  }
  wake();
}

void Relay::refuse(bool refused) {
  MutexLock lock(mutex_);
  if (refused && listener_ >= 0) {
    close(std::exchange(listener_, -1));
  } else if (!refused && listener_ < 0) {
    listen();
  }
}

uint64_t Relay::connections() const {
  MutexLock lock(mutex_);
  return accepted_;
}

std::array<Traffic, kDirections> Relay::traffic() const {
  MutexLock lock(mutex_);
  return {paths_[kToTarget].traffic, paths_[kToClient].traffic};
}

// ---- Connections

void Relay::listen() {
  mutex_.assume_held();
  Name name = parse(address_);
  const bool local = name.any.sa_family == AF_UNIX;
  if (local) unlink(address_.c_str() + 5);
  listener_ = open_socket(name);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener_, &name.any, name.size) != 0 || ::listen(listener_, SOMAXCONN) != 0) {
    throw_errno("cannot listen on " + address_);
  }
  if (!local) {
    getsockname(listener_, &name.any, &name.size);
    address_ = address_.substr(0, address_.rfind(':') + 1) + std::to_string(ntohs(name.v4.sin_port));
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = &listener_;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event) != 0) throw_errno("epoll_ctl");
}

void Relay::accept_all() {
  while (listener_ >= 0 && acceptable_ && !stalled_) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
      add_connection(client);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      acceptable_ = false;
    }
  }
}

void Relay::add_connection(int client) {
  ++accepted_;
  const Name name = parse(options_.target);
  const int target = open_socket(name);
  if (connect(target, &name.any, name.size) != 0 && errno != EINPROGRESS) {
    close(client);
    close(target);
    return;
  }
  send_at_once(client);
  send_at_once(target);
  Connection& connection = connections_.emplace_back();
  for (int d = 0; d < kDirections; ++d) {
    connection.pipes[d].extra_delay = random_delay(paths_[d].conditions.connection_delay);
  }
  connection.sockets[0].fd = client;
  connection.sockets[1].fd = target;
  for (Socket& socket : connection.sockets) watch(socket);
}

void Relay::watch(Socket& socket) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &socket;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket.fd, &event) != 0) throw_errno("epoll_ctl");
}

Relay::Clock::duration Relay::random_delay(double max) {
  if (max <= 0) return {};
  return duration(std::uniform_real_distribution<double>(0, max)(random_));
}

// ---- The thread

void Relay::run() {
  prctl(PR_SET_TIMERSLACK, 1);  // nanosecond; the default delays timers by 50 us
  Clock::time_point timer_at = Clock::time_point::max();
  Clock::time_point next = Clock::time_point::max();
  std::array<epoll_event, 64> events;
  for (;;) {
    if (next != timer_at && next > Clock::now()) {
      timer_at = next;
      itimerspec at{};
      if (next != Clock::time_point::max()) {
        const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(next.time_since_epoch()).count();
        at.it_value = {since / 1'000'000'000, since % 1'000'000'000};
      }
      timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
    }
    const int count = epoll_wait(epoll_, events.data(), events.size(), next <= Clock::now() ? 0 : -1);
    MutexLock lock(mutex_);
    if (stopping_) return;
    for (int i = 0; i < count; ++i) {
      void* const what = events[i].data.ptr;
      if (what == &timer_ || what == &wake_) {
        uint64_t ignored;
        [[maybe_unused]] const ssize_t bytes = read(*static_cast<int*>(what), &ignored, sizeof ignored);
      } else if (what == &listener_) {
        acceptable_ = true;
      } else {
        Socket& socket = *static_cast<Socket*>(what);
        const uint32_t happened = events[i].events;
        if (happened & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) socket.hung_up = true;
        if (happened & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) socket.readable = true;
        if (happened & (EPOLLOUT | EPOLLHUP | EPOLLERR)) socket.writable = true;
      }
    }
    accept_all();
    next = progress();
  }
}

Relay::Clock::time_point Relay::progress() {
  Clock::time_point next = Clock::time_point::max();
  auto each = connections_.begin();
  for (size_t left = connections_.size(); left > 0; --left) {
    Connection& connection = *each;
    bool served = false;
    for (int d = 0; d < kDirections && !connection.dead; ++d) {
      const int turns = paths_[d].conditions.rate > 0 ? 1 : kReadsPerTurn;
      for (int i = 0; i < turns && receive(connection, d); ++i) served = true;
      if (!stalled_ && !connection.lost) deliver(connection, d);
    }
    const auto here = each++;
    if (connection.dead) {
      for (Socket& socket : connection.sockets) close(socket.fd);
      connections_.erase(here);
      continue;
    }
    // If the bottleneck has no room for all, the next turn begins with the others.
    if (served) connections_.splice(connections_.end(), connections_, here);
  }
  const Clock::time_point now = Clock::now();
  for (const Connection& connection : connections_) next = std::min(next, next_event(connection, now));
  return next;
}

Relay::Clock::time_point Relay::next_event(const Connection& connection, Clock::time_point now) const {
  if (connection.dead) return now;
  Clock::time_point next = Clock::time_point::max();
  for (int d = 0; d < kDirections; ++d) {
    const Pipe& pipe = connection.pipes[d];
    if (!pipe.chunks.empty() && connection.sockets[1 - d].writable && !stalled_) {
      next = std::min(next, pipe.chunks.front().arrival);
    }
    if (!connection.sockets[d].readable || connection.sockets[d].ended) continue;
    if (has_room(connection, d, now)) return now;
    if (has_room(connection, d, Clock::time_point::max()))
      next = std::min(next, paths_[d].busy_until - paths_[d].queue);
  }
  return next;
}

// Whether the pipe has room, and the bottleneck's queue has room at `now`.
bool Relay::has_room(const Connection& connection, int direction, Clock::time_point now) const {
  if (connection.lost) return true;
  const Path& path = paths_[direction];
  const Conditions& c = path.conditions;
  if (c.rate == 0) return connection.pipes[direction].queued < kUnlimitedPipeBytes;
  const double held = c.rate * (c.delay + c.jitter + c.connection_delay);
  if (connection.pipes[direction].queued >= kPipeBytes + static_cast<size_t>(held)) return false;
  return path.busy_until < now || path.busy_until - now < path.queue || now == Clock::time_point::max();
}

size_t Relay::read_size(int direction) const {
  const double rate = paths_[direction].conditions.rate;
  if (rate == 0) return kReadBytes;
  return std::clamp(static_cast<size_t>(rate * kReadSeconds), kMinReadBytes, kReadBytes);
}

bool Relay::receive(Connection& connection, int direction) {
  Socket& source = connection.sockets[direction];
  Pipe& pipe = connection.pipes[direction];
  Path& path = paths_[direction];
  const Clock::time_point now = Clock::now();
  if (!source.readable || source.ended || !has_room(connection, direction, now)) return false;
  const size_t size = read_size(direction);
  const ssize_t count = recv(source.fd, buffer_.data(), size, 0);
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    source.readable = false;
    return false;
  }
  if (count <= 0 || (static_cast<size_t>(count) < size && !source.hung_up)) source.readable = false;
  source.ended = count <= 0;
  if (count > 0) {
    path.traffic.bytes += static_cast<uint64_t>(count);
    ++path.traffic.chunks;
  }
  if (connection.lost) {
    if (count > 0) return true;
    connection.dead = connection.sockets[1 - direction].ended;
    return false;
  }
  Clock::time_point sent = now;
  const Conditions& c = path.conditions;
  if (c.rate > 0) {
    path.busy_until =
        std::max(now, path.busy_until) + duration(static_cast<double>(std::max<ssize_t>(count, 0)) / c.rate);
    sent = path.busy_until;
  }
  pipe.last_arrival = std::max(pipe.last_arrival, sent + duration(c.delay) + pipe.extra_delay + random_delay(c.jitter));
  const End end = count > 0 ? End::kNone : count == 0 ? End::kClosed : End::kBroken;
  pipe.chunks.push_back({pipe.last_arrival, {}, end});
  if (count > 0) {
    pipe.chunks.back().bytes.assign(buffer_.data(), static_cast<size_t>(count));
    pipe.queued += static_cast<size_t>(count);
  }
  return count > 0;
}

void Relay::deliver(Connection& connection, int direction) {
  Pipe& pipe = connection.pipes[direction];
  Socket& target = connection.sockets[1 - direction];
  const Clock::time_point now = Clock::now();
  while (!pipe.chunks.empty() && pipe.chunks.front().arrival <= now && target.writable && !connection.dead) {
    if (const End end = pipe.chunks.front().end; end != End::kNone) {
      pipe.chunks.clear();
      pipe.done = true;
      ::shutdown(target.fd, SHUT_WR);
      connection.dead = end == End::kBroken || connection.pipes[1 - direction].done;
      return;
    }
    std::array<iovec, 64> parts;
    size_t count = 0, total = 0, skip = pipe.sent;
    uint64_t limit = UINT64_MAX;
    for (const uint64_t left : {paths_[direction].cut_after, cut_in_}) {
      if (left > 0) limit = std::min(limit, left);
    }
    for (Chunk& chunk : pipe.chunks) {
      if (count == parts.size() || chunk.arrival > now || chunk.end != End::kNone || total == limit) break;
      const size_t size = std::min<uint64_t>(chunk.bytes.size() - skip, limit - total);
      parts[count++] = {chunk.bytes.data() + skip, size};
      total += size;
      skip = 0;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(target.fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      target.writable = false;
      connection.dead = errno != EAGAIN && errno != EWOULDBLOCK;
      return;
    }
    if (static_cast<size_t>(sent) < total) target.writable = false;
    pipe.queued -= static_cast<size_t>(sent);
    pipe.sent += static_cast<size_t>(sent);
    while (!pipe.chunks.empty() && pipe.chunks.front().end == End::kNone &&
           pipe.sent >= pipe.chunks.front().bytes.size()) {
      pipe.sent -= pipe.chunks.front().bytes.size();
      pipe.chunks.pop_front();
    }
    count_forwarded(direction, static_cast<size_t>(sent));
  }
}

void Relay::count_forwarded(int direction, size_t bytes) {
  bool cut = false;
  for (uint64_t* left : {&paths_[direction].cut_after, &cut_in_}) {
    if (*left == 0) continue;
    *left -= std::min<uint64_t>(*left, bytes);
    cut = cut || *left == 0;
  }
  if (cut) cut_all();
}

}  // namespace tt::relay
