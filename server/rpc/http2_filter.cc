#include "server/rpc/http2_filter.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "server/log.h"
#include "server/rpc/http2_meter.h"

namespace tt::server {
namespace {

using Clock = Http2Meter::Clock;
using RecvMsg = ssize_t (*)(int, msghdr*, int);
using SslRead = int (*)(SSL*, void*, int);

// Descriptors beyond this are not limited. The engine admits fewer connections, and the lowest free number is used.
constexpr int kMaxDescriptors = 1 << 16;
constexpr size_t kMaxParts = 64;  // of one read; gRPC uses up to 64

// What is known of the socket that a descriptor refers to, or referred to: its inode identifies it.
struct Socket {
  Mutex mutex;
  ino_t inode ABSL_GUARDED_BY(mutex) = 0;
  Http2Meter meter ABSL_GUARDED_BY(mutex);
  // The budget, 0: none; what was used of it, and the meter's counts at the start of the interval.
  uint64_t budget ABSL_GUARDED_BY(mutex) = 0;
  uint64_t bytes ABSL_GUARDED_BY(mutex) = 0;
  uint64_t frames ABSL_GUARDED_BY(mutex) = 0;
  uint64_t header_bytes ABSL_GUARDED_BY(mutex) = 0;
  Clock::time_point since ABSL_GUARDED_BY(mutex){};

  void identify(ino_t current) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (inode == current) return;
    inode = current;
    meter = {};
    budget = 0;
  }
  void begin_interval(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    since = now;
    bytes = 0;
    frames = meter.frames();
    header_bytes = meter.header_bytes();
  }
  // How much may be read now.
  uint64_t left(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (budget == 0) return UINT64_MAX;
    if (now - since > std::chrono::seconds(kFirstSeconds)) begin_interval(now);
    const bool exhausted = bytes >= budget || meter.frames() - frames >= kFirstFrames ||
                           meter.header_bytes() - header_bytes >= kFirstHeaderBytes;
    return exhausted ? 0 : budget - bytes;
  }
};

ino_t inode_of(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

// Sockets by descriptor, created at first use and never freed, since descriptors are reused.
Socket* socket_of(int fd) {
  static std::array<std::atomic<Socket*>, kMaxDescriptors> all;
  if (fd < 0 || fd >= kMaxDescriptors) return nullptr;
  std::atomic<Socket*>& slot = all[static_cast<size_t>(fd)];
  if (Socket* found = slot.load(std::memory_order_acquire); found != nullptr) return found;
  auto made = std::make_unique<Socket>();
  Socket* expected = nullptr;
  return slot.compare_exchange_strong(expected, made.get()) ? made.release() : expected;
}

void log_closed(const char* limit) {
  static LogLimit lines;
  lines.warn(absl::StrCat("closed a connection: its HTTP/2 frames exceeded a limit (", limit, ")"));
}

// Reads at most `bytes` into the message's buffers.
ssize_t read_some(RecvMsg next, int fd, msghdr* message, int flags, uint64_t bytes) {
  if (bytes == UINT64_MAX) return next(fd, message, flags);
  std::array<iovec, kMaxParts> parts;
  msghdr limited = *message;
  limited.msg_iov = parts.data();
  limited.msg_iovlen = 0;
  for (size_t i = 0; i < message->msg_iovlen && i < kMaxParts && bytes != 0; ++i) {
    parts[i] = message->msg_iov[i];
    parts[i].iov_len = std::min<size_t>(parts[i].iov_len, bytes);
    bytes -= parts[i].iov_len;
    ++limited.msg_iovlen;
  }
  const ssize_t received = next(fd, &limited, flags);
  message->msg_flags = limited.msg_flags;
  message->msg_namelen = limited.msg_namelen;
  message->msg_controllen = limited.msg_controllen;
  return received;
}

ssize_t receive(RecvMsg next, int fd, msghdr* message, int flags) {
  Socket* const socket = socket_of(fd);
  const ino_t inode = socket != nullptr ? inode_of(fd) : 0;
  if (inode == 0) return next(fd, message, flags);
  uint64_t left = 0;
  const Clock::time_point now = Clock::now();
  {
    MutexLock lock(socket->mutex);
    socket->identify(inode);
    left = socket->left(now);
  }
  if (left == 0) {
    errno = EAGAIN;
    return -1;
  }
  const ssize_t received = read_some(next, fd, message, flags, left);
  if (received <= 0) return received;
  const char* exceeded = nullptr;
  {
    MutexLock lock(socket->mutex);
    socket->identify(inode);
    socket->bytes += static_cast<uint64_t>(received);
    auto rest = static_cast<size_t>(received);
    for (size_t i = 0; i < message->msg_iovlen && rest != 0 && exceeded == nullptr; ++i) {
      const iovec& part = message->msg_iov[i];
      const size_t used = std::min(rest, part.iov_len);
      exceeded = socket->meter.receive({static_cast<const char*>(part.iov_base), used}, now);
      rest -= used;
    }
  }
  if (exceeded == nullptr) return received;
  log_closed(exceeded);
  shutdown(fd, SHUT_RDWR);
  errno = ECONNRESET;
  return -1;
}

void free_meter(void* /*ssl*/, void* meter, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*argl*/, void* /*argp*/) {
  delete static_cast<Http2Meter*>(meter);
}

// The meter of a server's side of a TLS connection, which is freed with it.
Http2Meter* meter_of(SSL* ssl) {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &free_meter);
  if (SSL_is_server(ssl) == 0) return nullptr;
  auto* meter = static_cast<Http2Meter*>(SSL_get_ex_data(ssl, index));
  if (meter != nullptr) return meter;
  auto made = std::make_unique<Http2Meter>();
  return SSL_set_ex_data(ssl, index, made.get()) == 1 ? made.release() : nullptr;
}

int receive_tls(SslRead next, SSL* ssl, void* bytes, int size) {
  const int received = next(ssl, bytes, size);
  Http2Meter* const meter = received > 0 ? meter_of(ssl) : nullptr;
  if (meter == nullptr) return received;
  const absl::string_view text(static_cast<const char*>(bytes), static_cast<size_t>(received));
  const char* const exceeded = meter->receive(text, Clock::now());
  if (exceeded == nullptr) return received;
  log_closed(exceeded);
  ERR_raise(ERR_LIB_SSL, ERR_R_PASSED_INVALID_ARGUMENT);  // SSL_get_error() returns SSL_ERROR_SSL
  return -1;
}

}  // namespace

void limit_first_bytes(int fd, uint64_t bytes) {
  Socket* const socket = socket_of(fd);
  if (socket == nullptr) return;
  MutexLock lock(socket->mutex);
  socket->identify(inode_of(fd));
  socket->budget = bytes;
  socket->begin_interval(Clock::now());
}

void lift_limit(int fd) {
  Socket* const socket = socket_of(fd);
  if (socket == nullptr) return;
  {
    MutexLock lock(socket->mutex);
    socket->budget = 0;
  }
  // Makes the kernel report the bytes that have arrived already once more, which gRPC waits for.
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
}

}  // namespace tt::server

// The symbols that gRPC uses. A peek or a message of the error queue takes nothing from the stream.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto next = reinterpret_cast<tt::server::RecvMsg>(dlsym(RTLD_NEXT, "recvmsg"));
  if ((flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return next(fd, message, flags);
  return tt::server::receive(next, fd, message, flags);
}

extern "C" int SSL_read(SSL* ssl, void* bytes, int size) {
  static const auto next = reinterpret_cast<tt::server::SslRead>(dlsym(RTLD_NEXT, "SSL_read"));
  return tt::server::receive_tls(next, ssl, bytes, size);
}
