#include "server/http/connections.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/device/pool_threads.h"
#include "server/log.h"
#include "server/rpc/call_admission.h"
#include "server/rpc/listening_sockets.h"

namespace tt::server {
namespace {

constexpr int kComputingThreads = 2;
// Connections accepted from one socket before others are served.
constexpr int kBurst = 16;
// When descriptors or memory run out, connections wait in the kernel's queue for this time.
constexpr std::chrono::milliseconds kPause{50};
// Bytes after a request, such as the body of a POST, that are read so that the peer receives the answer: closing a
// socket with unread bytes would discard what was sent.
constexpr size_t kMaxDiscarded = size_t{64} << 10;
constexpr uint64_t kFirstConnection = 1'000;  // numbers below are those of listening sockets and of wake_

constexpr char kTooLarge[] =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr char kBusy[] =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

// Results of receive() and send() besides a number of bytes; 0: the peer has closed the connection.
constexpr ssize_t kLater = -1, kFailed = -2;

ssize_t result_of(SSL* ssl, int result, uint32_t* events) {
  if (result > 0) return result;
  const int error = SSL_get_error(ssl, result);
  ERR_clear_error();
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return kFailed;
  *events = error == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT;
  return kLater;
}

ssize_t result_of(ssize_t result) {
  if (result >= 0) return result;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? kLater : kFailed;
}

// `events`: for which to wait if the result is kLater. Completes the handshake first.
ssize_t receive(int fd, SSL* ssl, char* bytes, size_t size, uint32_t* events) {
  *events = EPOLLIN;
  if (ssl == nullptr) return result_of(recv(fd, bytes, size, 0));
  ERR_clear_error();
  return result_of(ssl, SSL_read(ssl, bytes, static_cast<int>(size)), events);
}

ssize_t send_some(int fd, SSL* ssl, absl::string_view bytes, uint32_t* events) {
  *events = EPOLLOUT;
  if (ssl == nullptr) return result_of(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  ERR_clear_error();
  const size_t size = std::min<size_t>(bytes.size(), size_t{1} << 20);
  return result_of(ssl, SSL_write(ssl, bytes.data(), static_cast<int>(size)), events);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpConnections>> HttpConnections::start(Address* address, std::unique_ptr<HttpTls> tls,
                                                                        const Options& options, Answer answer,
                                                                        std::function<bool(absl::string_view)> is_quick,
                                                                        Admit admit,
                                                                        std::vector<ListeningSocket> inherited) {
  absl::StatusOr<std::vector<ListeningSocket>> sockets = std::move(inherited);
  if (sockets->empty()) {
    std::vector<Address> addresses = {*address};
    sockets = open_listening_sockets(&addresses);
    if (!sockets.ok()) return sockets.status();
    *address = addresses[0];
  }
  std::unique_ptr<HttpConnections> connections(new HttpConnections(
      *std::move(sockets), std::move(tls), options, std::move(answer), std::move(is_quick), std::move(admit)));
  if (!connections->epoll_ || !connections->wake_) return absl::ResourceExhaustedError("no file descriptors for HTTP");
  HttpConnections* const self = connections.get();
  self->threads_.emplace_back([self] { self->serve(); });
  for (int i = 0; i < kComputingThreads; ++i) {
    self->threads_.emplace_back([self] { self->compute(false); });
  }
  for (int i = 0; i < options.body_threads; ++i) {
    self->threads_.emplace_back([self] { self->compute(true); });
  }
  return connections;
}

HttpConnections::HttpConnections(std::vector<ListeningSocket> listeners, std::unique_ptr<HttpTls> tls,
                                 const Options& options, Answer answer, std::function<bool(absl::string_view)> is_quick,
                                 Admit admit)
    : options_(options),
      answer_(std::move(answer)),
      is_quick_(std::move(is_quick)),
      admit_(std::move(admit)),
      tls_(std::move(tls)),
      last_(kFirstConnection),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      idle_slow_(options.body_threads) {
  for (ListeningSocket& socket : listeners) {
    listeners_.push_back(std::move(socket.fd));
    watch(EPOLL_CTL_ADD, listeners_.back().get(), listeners_.size() - 1, EPOLLIN);
  }
  watch(EPOLL_CTL_ADD, wake_.get(), listeners_.size(), EPOLLIN);
}

HttpConnections::~HttpConnections() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  slow_changed_.notify_all();
  more_changed_.notify_all();
  eventfd_write(wake_.get(), 1);
  for (std::thread& thread : threads_) thread.join();
  {
    MutexLock lock(mutex_);
    while (!more_threads_.empty()) slow_changed_.wait(mutex_);
  }
  join_ended_threads();
}

std::vector<int> HttpConnections::sockets() const {
  std::vector<int> sockets;
  sockets.reserve(listeners_.size());
  for (const FileDescriptor& each : listeners_) sockets.push_back(each.get());
  return sockets;
}

void HttpConnections::finish(std::chrono::milliseconds idle, std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kPoll{10};
  busy_ = 1;  // until the serving thread has counted
  finishing_ = true;
  eventfd_write(wake_.get(), 1);
  const auto began = Clock::now();
  for (;;) {
    std::this_thread::sleep_for(kPoll);
    const auto passed = Clock::now() - began;
    if (passed >= timeout || (busy_ == 0 && (open_ == 0 || passed >= idle))) return;
    eventfd_write(wake_.get(), 1);  // to count again
  }
}

void HttpConnections::count_connections() {
  size_t busy = 0;
  for (const auto& [id, each] : connections_) {
    const bool is_idle = (each.step == Step::kReceive && each.text.empty()) || each.step == Step::kDiscard;
    busy += is_idle ? 0 : 1;
  }
  open_ = connections_.size();
  busy_ = busy;
}

void HttpConnections::watch(int operation, int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), operation, fd, &event);
}

void HttpConnections::serve() {
  epoll_event events[64];
  for (;;) {
    const int ready = epoll_wait(epoll_.get(), events, 64, milliseconds_left());
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
    }
    if (finishing_ && !std::exchange(is_finishing_, true)) {
      for (const FileDescriptor& each : listeners_) watch(EPOLL_CTL_DEL, each.get(), 0, 0);
    }
    for (int i = 0; i < ready; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id < listeners_.size()) {
        if (!is_finishing_) accept_some(listeners_[id].get());
      } else if (id == listeners_.size()) {
        collect_results();
      } else {
        advance(id);
      }
    }
    close_overdue();
    join_ended_threads();
    if (is_finishing_) count_connections();
  }
}

// Returns the time until the next deadline for epoll_wait; -1: there is none.
int HttpConnections::milliseconds_left() const {
  Clock::time_point next = paused_ ? pause_end_ : Clock::time_point::max();
  for (const auto& [id, each] : connections_) {
    if (each.step != Step::kAnswer) next = std::min(next, each.deadline);
  }
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void HttpConnections::close_overdue() {
  const Clock::time_point now = Clock::now();
  std::vector<uint64_t> overdue;
  for (const auto& [id, each] : connections_) {
    if (each.step != Step::kAnswer && each.deadline <= now) overdue.push_back(id);
  }
  for (const uint64_t id : overdue) close(id);
  if (paused_ && pause_end_ <= now && !is_finishing_) listen_again(true);
}

void HttpConnections::listen_again(bool on) {
  paused_ = !on;
  pause_end_ = Clock::now() + kPause;
  for (size_t i = 0; i < listeners_.size(); ++i) {
    watch(EPOLL_CTL_MOD, listeners_[i].get(), i, on ? static_cast<uint32_t>(EPOLLIN) : 0);
  }
}

void HttpConnections::accept_some(int listener) {
  for (int i = 0; i < kBurst && accept_one(listener); ++i) continue;
}

// Returns false if no connection waits, or none can be accepted now.
bool HttpConnections::accept_one(int listener) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  FileDescriptor fd(accept4(listener, reinterpret_cast<sockaddr*>(&name), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      static LogLimit limit(1, std::chrono::seconds(10));
      limit.warn(absl::StrCat("cannot accept an HTTP connection: ", std::strerror(errno)));
      listen_again(false);
    }
    return errno == EINTR || errno == ECONNABORTED;
  }
  std::string peer = peer_of(name);
  std::string address = address_of(peer);
  if (!make_room(address)) return true;
  SslPointer ssl = tls_ ? tls_->accept(fd.get()) : nullptr;
  if (tls_ && !ssl) return true;
  const uint64_t id = ++last_;
  connections_[id] = {.fd = std::move(fd),
                      .ssl = std::move(ssl),
                      .peer = std::move(peer),
                      .address = std::move(address),
                      .deadline = Clock::now() + options_.receive_timeout};
  advance(id);
  return true;
}

// Closes a connection if a limit would be exceeded. Returns false if none can be closed.
bool HttpConnections::make_room(const std::string& address) {
  absl::flat_hash_map<absl::string_view, size_t> counts;
  for (const auto& [id, each] : connections_) ++counts[each.address];
  std::string from = address;
  if (counts[address] < options_.per_address) {
    if (connections_.size() < options_.connections) return true;
    from = std::string(std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                         return a.second < b.second;
                       })->first);
  }
  const auto oldest = [&](bool sends) {
    return std::find_if(connections_.begin(), connections_.end(), [&](const auto& each) {
      const Step step = each.second.step;
      return each.second.address == from && step != Step::kAnswer && (step == Step::kSend) == sends;
    });
  };
  auto replaced = oldest(false);
  if (replaced == connections_.end()) replaced = oldest(true);
  if (replaced == connections_.end()) return false;
  close(replaced->first);
  return true;
}

// Does what a connection's step allows now, and waits for the event that its next step needs.
void HttpConnections::advance(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // closed since the event
  Connection& connection = found->second;
  uint32_t events = 0;
  Progress progress = Progress::kAgain;
  while (progress == Progress::kAgain) {
    switch (connection.step) {
      case Step::kReceive: progress = receive_request(id, connection, &events); break;
      case Step::kAnswer: return;
      case Step::kSend: progress = send_answer(connection, &events); break;
      case Step::kDiscard: progress = discard(connection, &events); break;
    }
  }
  if (progress == Progress::kClosed) return close(id);
  watch(std::exchange(connection.watched, true) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, connection.fd.get(), id, events);
}

HttpConnections::Progress HttpConnections::receive_request(uint64_t id, Connection& connection, uint32_t* events) {
  char bytes[size_t{64} << 10];
  const ssize_t received = receive(connection.fd.get(), connection.ssl.get(), bytes, sizeof bytes, events);
  if (received == kLater) return Progress::kLater;
  if (received <= 0) return Progress::kClosed;
  std::string& text = connection.text;
  const size_t before = text.size();
  text.append(bytes, static_cast<size_t>(received));
  if (connection.expected != 0) {
    if (text.size() >= connection.expected) return answer_request(id, connection);
    set_body_deadline(connection);
    return Progress::kAgain;
  }
  const size_t end = text.find("\r\n\r\n", before - std::min<size_t>(before, 3));
  const size_t size = end == std::string::npos ? text.size() : end + 4;
  if (size > options_.request_bytes) return begin_answer(connection, {kTooLarge});
  if (end == std::string::npos) return Progress::kAgain;
  return receive_body(id, connection, size);
}

HttpConnections::Progress HttpConnections::receive_body(uint64_t id, Connection& connection, size_t size) {
  std::string& text = connection.text;
  Body body;
  if (admit_) {
    const bool certified = !tls_ || !tls_->requires_certificate() || HttpTls::has_certificate(connection.ssl.get());
    body = admit_(absl::string_view(text).substr(0, size), connection.peer, certified);
  }
  if (!body.refusal.empty()) return begin_answer(connection, {std::move(body.refusal)});
  connection.expected = size + body.bytes;
  connection.is_slow = body.is_slow && options_.body_threads != 0;
  if (body.bytes == 0 && !connection.is_slow) {
    connection.has_more = text.size() > size;  // belongs to another request: the connection does not stay open
    text.resize(size);
    return answer_request(id, connection);
  }
  if (!bodies_.has_room(connection.address, body.bytes, options_.body_bytes)) return begin_answer(connection, {kBusy});
  connection.reserved = body.bytes;
  bodies_.add(connection.address, body.bytes);
  if (text.size() >= connection.expected) return answer_request(id, connection);
  connection.body_begin = Clock::now();
  set_body_deadline(connection);
  if (body.wants_continue) {
    uint32_t events = 0;
    const ssize_t sent = send_some(connection.fd.get(), connection.ssl.get(), kContinue, &events);
    if (sent >= 0 && static_cast<size_t>(sent) != std::strlen(kContinue)) return Progress::kClosed;
  }
  return Progress::kAgain;
}

void HttpConnections::set_body_deadline(Connection& connection) const {
  const std::chrono::milliseconds expected(connection.text.size() * 1000 / std::max<size_t>(options_.body_rate, 1));
  connection.deadline = connection.body_begin + std::min(options_.body_timeout, options_.body_delay + expected);
}

// Waits for the peer's next request, which comes after the answer.
HttpConnections::Progress HttpConnections::next_request(Connection& connection) {
  connection.text.clear();
  connection.expected = connection.moved = 0;
  connection.is_slow = connection.stays_open = connection.has_more = false;
  connection.step = Step::kReceive;
  connection.deadline = Clock::now() + options_.idle_timeout;
  return Progress::kAgain;
}

HttpConnections::Progress HttpConnections::answer_request(uint64_t id, Connection& connection) {
  if (is_quick_(connection.text)) {
    return begin_answer(connection, answer_(connection.text, connection.peer, [] { return false; }));
  }
  if (!answers_.has_room(connection.address, 1, options_.waiting_bytes)) return begin_answer(connection, {kBusy});
  connection.step = Step::kAnswer;
  // Requests that are sent before the last one is answered are not served.
  connection.has_more = connection.has_more || connection.text.size() > connection.expected;
  connection.text.resize(std::min(connection.text.size(), connection.expected));
  if (std::exchange(connection.watched, false)) watch(EPOLL_CTL_DEL, connection.fd.get(), id, 0);
  {
    MutexLock lock(mutex_);
    (connection.is_slow ? slow_jobs_ : jobs_)
        .push_back({id, std::move(connection.text), connection.peer, connection.fd.get()});
    // Threads that end when they are idle work only while the others have enough.
    const bool needs_more = connection.is_slow && slow_jobs_.size() > static_cast<size_t>(idle_slow_);
    (needs_more ? more_changed_ : connection.is_slow ? slow_changed_ : changed_).notify_one();
  }
  if (connection.is_slow) start_thread();
  return Progress::kAgain;  // advance() sees the step
}

void HttpConnections::start_thread() {
  MutexLock lock(mutex_);
  if (slow_jobs_.size() <= static_cast<size_t>(idle_slow_ + idle_more_)) return;
  if (more_threads_.size() + static_cast<size_t>(options_.body_threads) >=
      static_cast<size_t>(options_.max_body_threads)) {
    return;
  }
  const auto own = more_threads_.emplace(more_threads_.end());
  try {
    *own = std::thread([this, own] { compute_more(own); });
    ++idle_more_;
  } catch (const std::system_error&) {  // the system has no thread; the request waits for one of the others
    more_threads_.erase(own);
  }
}

void HttpConnections::join_ended_threads() {
  std::list<std::thread> ended;
  {
    MutexLock lock(mutex_);
    ended.swap(ended_threads_);
  }
  for (std::thread& thread : ended) thread.join();
}

bool HttpConnections::is_cancelled(int fd) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return true;
  }
  pollfd state{fd, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void HttpConnections::compute(bool is_slow) {
  MutexLock lock(mutex_);
  std::deque<Job>& jobs = is_slow ? slow_jobs_ : jobs_;
  CondVar& changed = is_slow ? slow_changed_ : changed_;
  for (;;) {
    changed.wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !jobs.empty(); });
    if (stopping_) return;
    idle_slow_ -= is_slow ? 1 : 0;
    compute_one(&jobs);
    idle_slow_ += is_slow ? 1 : 0;
  }
}

void HttpConnections::compute_more(std::list<std::thread>::iterator own) {
  MutexLock lock(mutex_);
  for (;;) {
    const auto end = Clock::now() + options_.thread_idle;
    while (!stopping_ && slow_jobs_.empty() && Clock::now() < end) more_changed_.wait_until(mutex_, end);
    --idle_more_;
    if (stopping_ || slow_jobs_.empty()) break;
    compute_one(&slow_jobs_);
    ++idle_more_;
    if (slow_jobs_.empty()) {  // hundreds of threads must not keep one per core each
      MutexUnlock unlocked(mutex_);
      release_pool_threads();
    }
  }
  ended_threads_.splice(ended_threads_.end(), more_threads_, own);
  if (stopping_) slow_changed_.notify_all();
}

void HttpConnections::compute_one(std::deque<Job>* jobs) {
  Reply answer;
  uint64_t connection = 0;
  {
    const Job job = std::move(jobs->front());
    jobs->pop_front();
    MutexUnlock unlocked(mutex_);
    connection = job.connection;
    try {
      answer = answer_(job.request, job.peer, [this, fd = job.fd] { return is_cancelled(fd); });
    } catch (const std::exception& error) {  // the connection is closed
      log_line(LogLevel::kError, {}, absl::StrCat("HTTP request: internal error: ", error.what()));
    }
  }
  results_.push_back({connection, std::move(answer)});
  eventfd_write(wake_.get(), 1);
}

void HttpConnections::collect_results() {
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  std::vector<Result> results;
  {
    MutexLock lock(mutex_);
    results.swap(results_);
  }
  for (Result& result : results) {
    const auto found = connections_.find(result.connection);  // exists: it is not closed before its answer
    if (begin_answer(found->second, std::move(result.answer)) == Progress::kClosed) {
      close(result.connection);
    } else {
      advance(result.connection);
    }
  }
}

HttpConnections::Progress HttpConnections::begin_answer(Connection& connection, Reply reply) {
  bodies_.remove(connection.address, std::exchange(connection.reserved, 0));
  std::string& answer = reply.bytes;
  if (answer.empty()) return Progress::kClosed;
  constexpr absl::string_view kKeep = "\r\nConnection: keep-alive\r\n";
  const absl::string_view head = absl::string_view(answer).substr(0, answer.find("\r\n\r\n") + 2);
  const size_t keep = head.find(kKeep);
  connection.stays_open = !connection.has_more && keep != absl::string_view::npos && !is_finishing_;
  if (is_finishing_ && keep != absl::string_view::npos) {
    answer.replace(keep, kKeep.size(), "\r\nConnection: close\r\n");  // the client's next request needs another process
  }
  answers_.add(connection.address, answer.size());
  connection.text = std::move(answer);
  connection.kept = std::move(reply.kept);
  connection.moved = 0;
  connection.step = Step::kSend;
  connection.deadline = Clock::now() + options_.send_timeout;
  return Progress::kAgain;
}

HttpConnections::Progress HttpConnections::send_answer(Connection& connection, uint32_t* events) {
  const absl::string_view left = absl::string_view(connection.text).substr(connection.moved);
  const ssize_t sent = send_some(connection.fd.get(), connection.ssl.get(), left, events);
  if (sent == kLater) return Progress::kLater;
  if (sent <= 0) return Progress::kClosed;
  connection.moved += static_cast<size_t>(sent);
  connection.deadline +=
      std::chrono::milliseconds(static_cast<size_t>(sent) * 1000 / std::max<size_t>(options_.body_rate, 1));
  if (connection.moved < connection.text.size()) return Progress::kAgain;
  answers_.remove(connection.address, connection.text.size());
  connection.text = {};
  connection.kept = nullptr;
  connection.moved = 0;
  if (connection.stays_open) return next_request(connection);
  connection.step = Step::kDiscard;
  connection.deadline = Clock::now() + options_.discard_timeout;
  if (connection.ssl) {
    SSL_shutdown(connection.ssl.get());
    ERR_clear_error();
  }
  shutdown(connection.fd.get(), SHUT_WR);
  return Progress::kAgain;
}

HttpConnections::Progress HttpConnections::discard(Connection& connection, uint32_t* events) {
  char bytes[4096];
  const ssize_t received = receive(connection.fd.get(), connection.ssl.get(), bytes, sizeof bytes, events);
  if (received == kLater) return Progress::kLater;
  if (received <= 0) return Progress::kClosed;
  connection.moved += static_cast<size_t>(received);
  return connection.moved > kMaxDiscarded ? Progress::kClosed : Progress::kAgain;
}

bool HttpConnections::Bytes::has_room(const std::string& address, size_t bytes, size_t limit) const {
  const auto own = of_address.find(address);
  const size_t before = own == of_address.end() ? 0 : own->second;
  return bytes <= limit - std::min(limit, all) && (before == 0 || bytes <= limit / 2 - std::min(limit / 2, before));
}

void HttpConnections::Bytes::add(const std::string& address, size_t bytes) {
  if (bytes == 0) return;
  all += bytes;
  of_address[address] += bytes;
}

void HttpConnections::Bytes::remove(const std::string& address, size_t bytes) {
  if (bytes == 0) return;
  all -= bytes;
  const auto own = of_address.find(address);
  own->second -= bytes;
  if (own->second == 0) of_address.erase(own);
}

void HttpConnections::close(uint64_t id) {
  const auto found = connections_.find(id);
  bodies_.remove(found->second.address, found->second.reserved);
  if (found->second.step == Step::kSend) answers_.remove(found->second.address, found->second.text.size());
  connections_.erase(found);
}

}  // namespace tt::server
