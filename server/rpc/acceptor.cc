#include "server/rpc/acceptor.h"

#include <fcntl.h>
#include <linux/tcp.h>  // with tcpi_bytes_received, unlike <netinet/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/log.h"
#include "server/rpc/call_admission.h"
#include "server/rpc/http2_filter.h"

namespace tt::server {
namespace {

constexpr size_t kMaxConnections = 4096;
// File descriptors reserved for uses other than connections and their sessions' shared segments.
constexpr size_t kOtherDescriptors = 200;
// Time that a connection has to present a token before a new connection may replace it.
constexpr std::chrono::seconds kGrace{1};
// The same for a connection whose peer has sent nothing since its preface. A client continues as soon as it receives
// the engine's settings.
constexpr std::chrono::milliseconds kSilentGrace{100};
// What an HTTP/2 client sends first, without waiting for the server, and the time within which it must arrive.
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::chrono::seconds kPrefaceTimeout{2};
// The same for TLS: a handshake record (RFC 8446, 5.1) with a ClientHello, or its first kMaxHelloBytes.
constexpr size_t kTlsPrefaceBytes = 6, kMaxHelloBytes = 4096;
bool can_be_client_hello(absl::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  return (bytes.empty() || at(0) == 22) && (bytes.size() < 2 || at(1) == 3) && (bytes.size() < 3 || at(2) <= 4) &&
         (bytes.size() < 6 || at(5) == 1);
}
bool has_client_hello(absl::string_view bytes) {
  if (bytes.size() < kTlsPrefaceBytes) return false;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  return bytes.size() >= std::min<size_t>(5 + (size_t{at(3)} << 8 | at(4)), kMaxHelloBytes);
}
// Connections without a complete preface: in total a fraction of all connections, and half of it per address.
constexpr size_t kSilentFraction = 8;
// Limits per address: the number of connections without a token that gRPC handles at a time, of those that have sent
// more than their preface (their calls occupy threads) and of the others, the number of further connections that wait,
// and the time that they wait.
constexpr size_t kUnauthenticated = 8;
constexpr size_t kOnlyPreface = 128;
constexpr size_t kWaiting = 64;
constexpr std::chrono::seconds kTimeout{10};
constexpr int kPollMilliseconds = 50;
// A connection with this many refused calls within a second is closed, because each refused call occupies a thread
// briefly. For kPenalty, further connections from its address must wait.
constexpr int kRefusals = 50;
constexpr std::chrono::milliseconds kPenalty{100};
// A connection that has sent more than its budget (http2_filter.h) is closed if it does not present a token within this
// time. The first calls of a client, whose tokens are checked when their handlers run, may be requests of megabytes.
constexpr std::chrono::seconds kExcessTimeout{5};
// When descriptors or memory run out, stop accepting for this time; connections wait in the kernel's queue.
constexpr int kBackOffMilliseconds = 50;
// How often a paused thread checks whether to continue.
constexpr int kPausedMilliseconds = 5;
// Connections accepted from one listening socket before the next socket is checked.
constexpr int kBurst = 64;

// Raises the descriptor limit to its maximum and returns the number of connections that it allows.
size_t allowed_connections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxConnections / 8;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  const size_t descriptors = std::max<size_t>(limit.rlim_cur, 2 * kOtherDescriptors) - kOtherDescriptors;
  return std::min(kMaxConnections, descriptors / 2);
}

// Bytes received on a TCP connection; 0 for other sockets.
uint64_t received_bytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

// Time since the last bytes were received on a TCP connection.
std::chrono::milliseconds idle_time(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool known = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  return std::chrono::milliseconds(known ? info.tcpi_last_data_recv : 0);
}

uint64_t inode_of(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

Acceptor::Acceptor(std::vector<ListeningSocket> sockets, size_t per_address, bool tls)
    : per_address_(per_address),
      total_(allowed_connections()),
      sockets_(std::move(sockets)),
      tls_(tls),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      silent_(epoll_create1(EPOLL_CLOEXEC)),
      calling_(epoll_create1(EPOLL_CLOEXEC)) {}

absl::Status Acceptor::ok() const {
  if (wake_ >= 0 && silent_ >= 0 && calling_ >= 0) return absl::OkStatus();
  return absl::ResourceExhaustedError("no file descriptors to watch connections");
}

Acceptor::~Acceptor() {
  stop();
  close(calling_);
  close(silent_);
  close(wake_);
}

void Acceptor::start(Sinks sinks, bool paused) {
  sinks_ = std::move(sinks);
  if (paused) pause();
  thread_ = std::thread([this] { run(); });
}

void Acceptor::pause() {
  MutexLock lock(accepting_);
  paused_ = true;
}

void Acceptor::resume() {
  MutexLock lock(accepting_);
  paused_ = false;
}

void Acceptor::stop() {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wake_, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  for (const Waiting& each : waiting_) close(each.fd);
  waiting_.clear();
  while (!silent_connections_.empty()) close_silent(silent_connections_.begin());
  sockets_.clear();
}

void Acceptor::run() {
  std::vector<pollfd> watched;
  watched.reserve(sockets_.size() + 3);
  for (const ListeningSocket& socket : sockets_) watched.push_back({socket.fd.get(), POLLIN, 0});
  watched.push_back({silent_, POLLIN, 0});
  watched.push_back({calling_, POLLIN, 0});
  watched.push_back({wake_, POLLIN, 0});
  for (;;) {
    // The lists are used by this thread only.
    const bool idle = waiting_.empty() && silent_connections_.empty() && !any_excess_;
    const int timeout = idle ? -1 : kPollMilliseconds;
    if (poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) return;
    if (watched.back().revents != 0) return;
    limit_bytes();
    MutexLock accepting(accepting_);
    if (paused_) {
      accepting.unlock();
      poll(&watched.back(), 1, kPausedMilliseconds);
      continue;
    }
    if (!waiting_.empty()) serve_waiting();
    if (!silent_connections_.empty()) read_prefaces();
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (watched[i].revents == 0) continue;
      errno = 0;
      for (int burst = 0; burst < kBurst && accept_one(sockets_[i]); ++burst) errno = 0;
      if (errno == 0 || errno == EAGAIN || errno == EWOULDBLOCK) continue;
      static LogLimit limit(1, std::chrono::seconds(10));
      limit.warn(absl::StrCat("cannot accept a connection: ", std::strerror(errno)));
      poll(&watched.back(), 1, kBackOffMilliseconds);
    }
  }
}

// Returns false if there is no connection or accept fails; errno has the reason.
bool Acceptor::accept_one(const ListeningSocket& socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  const int fd = accept4(socket.fd.get(), reinterpret_cast<sockaddr*>(&name), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return errno == EINTR || errno == ECONNABORTED;
  const std::string peer = socket.is_unix ? "unix:" : peer_of(name);
  const bool tls = tls_ && !socket.is_unix;
  Waiting connection{fd, socket.fd.get(), peer, address_of(peer), Clock::now(), tls};
  switch (preface_of(fd, tls)) {
    case Preface::kComplete: receive(std::move(connection)); break;
    case Preface::kIncomplete: add_silent(std::move(connection)); break;
    case Preface::kInvalid: close(fd);
  }
  return true;
}

// Examines the received bytes without consuming them.
Acceptor::Preface Acceptor::preface_of(int fd, bool tls) {
  char bytes[kMaxHelloBytes];
  const ssize_t received = recv(fd, bytes, tls ? sizeof bytes : kPreface.size(), MSG_PEEK | MSG_DONTWAIT);
  if (received < 0) return errno == EAGAIN || errno == EINTR ? Preface::kIncomplete : Preface::kInvalid;
  const absl::string_view text(bytes, static_cast<size_t>(received));
  if (text.empty()) return Preface::kInvalid;  // the peer has closed
  if (tls) {
    if (!can_be_client_hello(text)) return Preface::kInvalid;
    return has_client_hello(text) ? Preface::kComplete : Preface::kIncomplete;
  }
  if (!absl::StartsWith(kPreface, text)) return Preface::kInvalid;
  return text == kPreface ? Preface::kComplete : Preface::kIncomplete;
}

// Keeps a connection until its preface is complete. At a limit, closes the oldest such connection.
void Acceptor::add_silent(Waiting connection) {
  const size_t most = std::max<size_t>(total_ / kSilentFraction, 8);
  const auto is_same = [&](const Waiting& each) { return each.address == connection.address; };
  auto& all = silent_connections_;
  if (static_cast<size_t>(std::count_if(all.begin(), all.end(), is_same)) >= most / 2) {
    close_silent(std::find_if(all.begin(), all.end(), is_same));
  } else if (all.size() >= most) {
    close_silent(all.begin());
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
  event.data.fd = connection.fd;
  if (epoll_ctl(silent_, EPOLL_CTL_ADD, connection.fd, &event) != 0) {
    close(connection.fd);
    return;
  }
  const int fd = connection.fd;
  silent_by_fd_[fd] = all.insert(all.end(), std::move(connection));
}

void Acceptor::close_silent(std::list<Waiting>::iterator at) {
  silent_by_fd_.erase(at->fd);
  close(at->fd);  // also removes it from the epoll set
  silent_connections_.erase(at);
}

// Passes on the connections whose preface is now complete, and closes those whose time has passed.
void Acceptor::read_prefaces() {
  epoll_event events[64];
  const int ready = epoll_wait(silent_, events, 64, 0);
  for (int i = 0; i < ready; ++i) {
    const auto found = silent_by_fd_.find(events[i].data.fd);
    if (found == silent_by_fd_.end()) continue;
    const auto at = found->second;
    const Preface preface = preface_of(at->fd, at->tls);
    if (preface == Preface::kInvalid) close_silent(at);
    if (preface != Preface::kComplete) continue;
    epoll_ctl(silent_, EPOLL_CTL_DEL, at->fd, nullptr);
    Waiting connection = std::move(*at);
    silent_by_fd_.erase(found);
    silent_connections_.erase(at);
    receive(std::move(connection));
  }
  const Clock::time_point oldest = Clock::now() - kPrefaceTimeout;
  while (!silent_connections_.empty() && silent_connections_.front().since < oldest) {
    close_silent(silent_connections_.begin());
  }
}

// Closes connections without a token that have sent too many bytes. The epoll descriptor reports every arrival once.
void Acceptor::limit_bytes() {
  epoll_event events[64];
  const int ready = epoll_wait(calling_, events, 64, 0);
  if (ready <= 0 && !any_excess_) return;
  const auto is_ready = [&](int fd) {
    return std::any_of(events, events + ready, [fd](const epoll_event& event) { return event.data.fd == fd; });
  };
  any_excess_ = false;
  const Clock::time_point now = Clock::now();
  MutexLock lock(mutex_);
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto each = it++;
    Connection& connection = each->second;
    if (connection.authenticated) continue;
    if (is_ready(connection.fd)) count_bytes(connection);
    if (connection.excess == Clock::time_point{}) continue;
    if (now - connection.excess < kExcessTimeout) {
      any_excess_ = true;
      continue;
    }
    static LogLimit limit;
    limit.warn(absl::StrCat("closed a connection from ", connection.address, ": it sent more than ", kFirstBytes,
                            " bytes without a token"),
               {.peer = connection.address});
    close_for_abuse(each);
  }
}

void Acceptor::count_bytes(Connection& connection) {
  if (inode_of(connection.fd) != connection.inode) return;  // gRPC has closed it
  const Clock::time_point now = Clock::now();
  const uint64_t received = received_bytes(connection.fd);
  if (now - connection.bytes_since > std::chrono::seconds(kFirstSeconds)) {
    connection.bytes_since = now;
    connection.bytes_before = received;
  }
  const bool exceeds = received - connection.bytes_before > kFirstBytes;
  if (exceeds && connection.excess == Clock::time_point{}) connection.excess = now;
}

// Shuts down a connection, and lets further ones from its address wait.
void Acceptor::close_for_abuse(Connections::iterator at) {
  shut_down(at->second);
  if (penalties_.size() >= kMaxConnections) penalties_.clear();
  penalties_[at->second.address] = Clock::now() + kPenalty;
  connections_.erase(at);
}

// Whether a connection from this address has presented a token.
bool Acceptor::serves(const std::string& address) {
  MutexLock lock(mutex_);
  return std::any_of(connections_.begin(), connections_.end(),
                     [&](const auto& each) { return each.second.authenticated && each.second.address == address; });
}

void Acceptor::receive(Waiting connection) {
  if (pass_to_grpc(connection)) return;
  const auto is_same = [&](const Waiting& each) { return each.address == connection.address; };
  const auto others = static_cast<size_t>(std::count_if(waiting_.begin(), waiting_.end(), is_same));
  auto closed = waiting_.end();
  if (others >= kWaiting) {
    closed = std::find_if(waiting_.begin(), waiting_.end(), is_same);
  } else if (waiting_.size() >= std::max<size_t>(total_ / 4, 1)) {
    // Addresses with live sessions keep their places.
    closed = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& each) { return !serves(each.address); });
    if (closed == waiting_.end()) closed = waiting_.begin();
  }
  if (closed != waiting_.end()) {
    close(closed->fd);
    static LogLimit limit;
    limit.warn(absl::StrCat("closed a connection from ", closed->address, ": too many connections are waiting"),
               {.peer = closed->address});
    waiting_.erase(closed);
  }
  waiting_.push_back(std::move(connection));
}

// Passes waiting connections to gRPC, the newest first, and closes those that have waited for kTimeout. During a flood
// of connections without tokens an older connection probably belongs to the flood, or its client may have given up.
void Acceptor::serve_waiting() {
  const Clock::time_point now = Clock::now();
  std::vector<Waiting> all = std::exchange(waiting_, {});
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    if (pass_to_grpc(*each)) continue;
    if (now - each->since < kTimeout) {
      waiting_.push_back(std::move(*each));
    } else {
      close(each->fd);
    }
  }
  std::reverse(waiting_.begin(), waiting_.end());
}

// Passes the connection to gRPC, or closes it if it exceeds a limit. Returns false if the connection must wait.
bool Acceptor::pass_to_grpc(const Waiting& waiting) {
  {
    MutexLock lock(mutex_);
    const Admission admission = admit(waiting.address);
    if (admission == Admission::kWait) return false;
    if (admission == Admission::kRefused) {
      close(waiting.fd);
      static LogLimit limit;
      limit.warn(absl::StrCat("closed a connection from ", waiting.address,
                              ": too many connections from this address or in total"),
                 {.peer = waiting.address});
      return true;
    }
    const bool is_unix = waiting.address == "unix";
    std::string key = is_unix ? absl::StrCat("unix ", ++unix_connections_) : connection_of(waiting.peer);
    const uint64_t received = received_bytes(waiting.fd);
    connections_[key] = {.fd = waiting.fd,
                         .inode = inode_of(waiting.fd),
                         .address = waiting.address,
                         .accepted = Clock::now(),
                         .authenticated = is_unix,
                         .tls = waiting.tls,
                         .first_bytes = received,
                         .bytes_since = Clock::now(),
                         .bytes_before = received};
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.fd = waiting.fd;
    if (!is_unix) {
      epoll_ctl(calling_, EPOLL_CTL_ADD, waiting.fd, &event);  // closing the socket removes it
      limit_first_bytes(waiting.fd);
    }
  }
  Sink::NewConnectionParameters connection;
  connection.listener_fd = waiting.listener_fd;
  connection.fd = waiting.fd;
  (waiting.tls ? sinks_.tls : sinks_.plain)->HandleNewConnection(&connection);
  return true;
}

// Decides whether another connection from `address` is admitted. Closes a connection without a token to make room if
// necessary.
Acceptor::Admission Acceptor::admit(const std::string& address) {
  const size_t of_address = address == "unix" ? total_ - total_ / 4 : std::min(per_address_, total_ / 2);
  if (auto found = penalties_.find(address); found != penalties_.end()) {
    if (Clock::now() < found->second) return Admission::kWait;
    penalties_.erase(found);
  }
  const size_t only_preface = std::clamp(total_ / kSilentFraction, kUnauthenticated, kOnlyPreface);
  Counts of = count(address);
  if (connections_.size() >= total_ || of.all >= of_address || of.calling >= kUnauthenticated ||
      of.silent >= only_preface) {
    sweep();
    of = count(address);
  }
  if (of.calling >= kUnauthenticated && !make_room(&address, /*among_calling=*/true)) return Admission::kWait;
  if (of.silent >= only_preface && !make_room(&address)) return Admission::kWait;
  if (count(address).all >= of_address && !make_room(&address)) {
    return of.calling + of.silent > 0 ? Admission::kWait : Admission::kRefused;
  }
  return connections_.size() < total_ || make_room(nullptr) ? Admission::kAdmit : Admission::kRefused;
}

// Whether the peer of a connection without a token has sent nothing since its preface. With TLS, also whether it has
// sent nothing lately, because its handshake alone has more bytes.
bool Acceptor::is_silent(const Connection& connection) {
  if (connection.first_bytes != 0 && received_bytes(connection.fd) == connection.first_bytes) return true;
  return connection.tls && idle_time(connection.fd) >= kSilentGrace;
}

Acceptor::Counts Acceptor::count(const std::string& address) const {
  Counts counts;
  for (const auto& [key, each] : connections_) {
    if (each.address != address) continue;
    ++counts.all;
    if (!each.authenticated) ++(is_silent(each) ? counts.silent : counts.calling);
  }
  return counts;
}

// Removes connections that gRPC has closed.
void Acceptor::sweep() {
  absl::erase_if(connections_, [](const auto& each) { return inode_of(each.second.fd) != each.second.inode; });
}

// Closes the oldest connection that has presented no token within kGrace, or has sent nothing within kSilentGrace, and
// returns false if there is none. Considers only connections from `address` unless `address` is null, and with
// `among_calling` none of the latter kind.
bool Acceptor::make_room(const std::string* address, bool among_calling) {
  auto oldest = connections_.end(), silent = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const Connection& each = it->second;
    if (each.authenticated || (address != nullptr && each.address != *address)) continue;
    auto& first = is_silent(each) ? silent : oldest;
    if (among_calling && &first == &silent) continue;
    if (first == connections_.end() || each.accepted < first->second.accepted) first = it;
  }
  const auto age = [now = Clock::now()](const auto& at) { return now - at->second.accepted; };
  auto replaced = connections_.end();
  if (silent != connections_.end() && age(silent) >= kSilentGrace) {
    replaced = silent;
  } else if (oldest != connections_.end() && age(oldest) >= kGrace) {
    replaced = oldest;
  }
  if (replaced == connections_.end()) return false;
  shut_down(replaced->second);
  connections_.erase(replaced);
  return true;
}

// Shuts the socket down, after which gRPC closes the connection.
void Acceptor::shut_down(const Connection& connection) {
  // The duplicate keeps referring to the same socket, even if gRPC closes the original.
  const int copy = fcntl(connection.fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return;
  if (inode_of(copy) == connection.inode) shutdown(copy, SHUT_RDWR);
  close(copy);
}

void Acceptor::refused(const std::string& peer) {
  MutexLock lock(mutex_);
  auto found = connections_.find(connection_of(peer));
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const Clock::time_point now = Clock::now();
  if (now - connection.refused_since > std::chrono::seconds(1)) {
    connection.refused_since = now;
    connection.refusals = 0;
  }
  if (++connection.refusals >= kRefusals) close_for_abuse(found);
}

void Acceptor::authenticated(const std::string& peer) {
  const std::string connection = connection_of(peer);
  if (connection == "unix") return;
  MutexLock lock(mutex_);
  auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (std::exchange(found->second.authenticated, true)) return;
  if (inode_of(found->second.fd) != found->second.inode) return;
  epoll_ctl(calling_, EPOLL_CTL_DEL, found->second.fd, nullptr);
  lift_limit(found->second.fd);
}

size_t Acceptor::size() {
  MutexLock lock(mutex_);
  sweep();
  return connections_.size();
}

}  // namespace tt::server
