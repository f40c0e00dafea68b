#include "tests/server/daemon/http2_peer.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tt::server::testing {
namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kGoaway = 7, kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;
constexpr uint16_t kInitialWindowSize = 4;
constexpr size_t kFrameBytes = 16384;

uint32_t number(std::string_view bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::string text(uint32_t value, int count) {
  std::string bytes;
  for (int shift = 8 * (count - 1); shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// HPACK's "literal header field without indexing", with a new name; our strings are shorter than 16 kB.
std::string literal_string(std::string_view value) {
  std::string bytes;
  size_t size = value.size();
  if (size < 127) {
    bytes += static_cast<char>(size);
  } else {
    bytes += static_cast<char>(127);
    for (size -= 127; size >= 128; size /= 128) bytes += static_cast<char>(size % 128 + 128);
    bytes += static_cast<char>(size);
  }
  return bytes.append(value);
}

std::string header(std::string_view name, std::string_view value) {
  return std::string(1, '\0') + literal_string(name) + literal_string(value);
}

}  // namespace

Http2Peer Http2Peer::to_socket(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) ::close(std::exchange(fd, -1));
  return Http2Peer(fd);
}

Http2Peer Http2Peer::to_port(int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) ::close(std::exchange(fd, -1));
  return Http2Peer(fd);
}

Http2Peer::Http2Peer(int fd) : fd_(fd) {
  write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  frame(kSettings, 0, 0, "");
}

Http2Peer::Http2Peer(Http2Peer&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      next_stream_(other.next_stream_),
      window_(other.window_),
      initial_window_(other.initial_window_),
      windows_(std::move(other.windows_)),
      received_(std::move(other.received_)) {}

Http2Peer::~Http2Peer() { close(); }

void Http2Peer::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

// Gives up if the engine accepts no bytes for two seconds: it stops reading while it cannot reply.
void Http2Peer::write(std::string_view bytes) {
  while (!bytes.empty() && fd_ >= 0) {
    ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    pollfd watched{fd_, POLLOUT, 0};
    if (errno != EAGAIN || poll(&watched, 1, 2000) <= 0) close();
  }
}

void Http2Peer::frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string bytes = text(static_cast<uint32_t>(payload.size()), 3);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  bytes += text(stream, 4);
  write(bytes.append(payload));
}

uint32_t Http2Peer::call(std::string_view method, const Metadata& metadata) {
  std::string block = header(":method", "POST") + header(":scheme", "http") + header(":path", method) +
                      header(":authority", "localhost") + header("te", "trailers") +
                      header("content-type", "application/grpc");
  for (const auto& [name, value] : metadata) block += header(name, value);
  const uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  windows_[stream] = initial_window_;
  frame(kHeaders, kEndHeaders, stream, block);
  return stream;
}

size_t Http2Peer::send(uint32_t stream, std::string_view bytes, size_t sent) {
  auto found = windows_.find(stream);
  while (found != windows_.end() && sent < bytes.size() && connected()) {
    int64_t room = std::min({window_, found->second, static_cast<int64_t>(kFrameBytes)});
    if (room <= 0) break;
    std::string_view piece = bytes.substr(sent, static_cast<size_t>(room));
    frame(kData, 0, stream, piece);
    window_ -= static_cast<int64_t>(piece.size());
    found->second -= static_cast<int64_t>(piece.size());
    sent += piece.size();
  }
  return sent;
}

bool Http2Peer::read(int milliseconds) {
  pollfd watched{fd_, POLLIN, 0};
  if (fd_ < 0) return false;
  if (poll(&watched, 1, milliseconds) <= 0) return true;
  char buffer[65536];
  ssize_t got = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got <= 0) {
    close();
    windows_.clear();
    return false;
  }
  received_.append(buffer, static_cast<size_t>(got));
  size_t at = 0;
  while (received_.size() - at >= 9) {
    std::string_view head(received_.data() + at, 9);
    size_t size = number(head, 3);
    if (received_.size() - at < 9 + size) break;
    take(static_cast<uint8_t>(head[3]), static_cast<uint8_t>(head[4]), number(head.substr(5), 4),
         std::string_view(received_).substr(at + 9, size));
    at += 9 + size;
  }
  received_.erase(0, at);
  return true;
}

bool Http2Peer::read_until_open(size_t open) {
  for (int quiet = 0; open_calls() > open && quiet < 600;) {
    size_t before = open_calls();
    if (!read(100)) return open == 0 || open_calls() <= open;
    quiet = open_calls() == before ? quiet + 1 : 0;
  }
  return open_calls() <= open;
}

void Http2Peer::take(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  if (type == kSettings && (flags & kAck) == 0) {
    for (size_t at = 0; at + 6 <= payload.size(); at += 6) {
      if (number(payload.substr(at), 2) != kInitialWindowSize) continue;
      const int64_t size = number(payload.substr(at + 2), 4);
      for (auto& [id, window] : windows_) window += size - initial_window_;
      initial_window_ = size;
    }
    frame(kSettings, kAck, 0, "");
  } else if (type == kPing && (flags & kAck) == 0) {
    frame(kPing, kAck, 0, std::string(payload));
  } else if (type == kWindowUpdate && stream == 0) {
    window_ += number(payload, 4);
  } else if (auto found = windows_.find(stream); type == kWindowUpdate && found != windows_.end()) {
    found->second += number(payload, 4);
  } else if (type == kReset || ((type == kHeaders || type == kData) && (flags & kEndStream) != 0)) {
    windows_.erase(stream);
  } else if (type == kGoaway) {
    close();
    windows_.clear();
  }
}

std::string message_prefix(uint32_t bytes, bool compressed) {
  return std::string(1, static_cast<char>(compressed)) + text(bytes, 4);
}

}  // namespace tt::server::testing
