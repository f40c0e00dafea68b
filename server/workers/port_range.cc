#include "server/workers/port_range.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"

namespace tt::server {
namespace {

constexpr int kAttempts = 32;  // ports that the system chooses

uint32_t port_of(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

// Binds `port` (0: any) at every address of the host, for a moment. Returns the port, or 0.
uint32_t probe(const std::string& host, uint32_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found) != 0) return 0;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  uint32_t bound = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const FileDescriptor fd(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (!fd) continue;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (each->ai_family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    // SO_REUSEADDR also allows to bind a port that another socket has bound but not yet listened on.
    if (bind(fd.get(), each->ai_addr, each->ai_addrlen) == 0 && listen(fd.get(), 1) == 0) {
      bound = port_of(fd.get());
    } else if (errno == EADDRINUSE) {
      return 0;
    }
  }
  return bound;
}

}  // namespace

absl::StatusOr<PortRange> PortRange::parse(absl::string_view text) {
  PortRange range;
  if (text.empty()) return range;
  const size_t dash = text.find('-');
  const bool valid = absl::SimpleAtoi(text.substr(0, dash), &range.first) &&
                     absl::SimpleAtoi(dash == text.npos ? text : text.substr(dash + 1), &range.last);
  if (!valid || range.first < 1 || range.last > 65535 || range.first > range.last) {
    return absl::InvalidArgumentError(absl::StrCat("expected ports such as 7100-7199, got '", text, "'"));
  }
  return range;
}

absl::StatusOr<uint32_t> free_port(const PortRange& range, const std::vector<std::string>& hosts) {
  const auto is_free = [&](uint32_t port) {
    for (const std::string& host : hosts) {
      if (probe(host, port) == 0) return false;
    }
    return true;
  };
  if (range.first == 0) {
    for (int i = 0; i < kAttempts && !hosts.empty(); ++i) {
      if (const uint32_t port = probe(hosts[0], 0); port != 0 && is_free(port)) return port;
    }
    return absl::ResourceExhaustedError("no port is free for a worker");
  }
  for (int port = range.first; port <= range.last; ++port) {
    if (is_free(static_cast<uint32_t>(port))) return static_cast<uint32_t>(port);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("none of the ports ", range.first, " to ", range.last, " (--worker-ports) is free for a worker"));
}

}  // namespace tt::server
