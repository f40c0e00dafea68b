#include "server/rpc/listening_sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/keepalive.h"

namespace tt::server {
namespace {

// A peer that acknowledges no data for this time is considered dead.
constexpr unsigned kUserTimeoutMilliseconds = kKeepaliveTimeoutMilliseconds;

absl::Status cannot_listen(const Address& address, int error) {
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.to_string(), ": ",
                                                    error == EADDRINUSE ? "the port is in use" : std::strerror(error)));
}

int listen_at(const sockaddr* name, socklen_t size) {
  const int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  if (name->sa_family != AF_UNIX) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    set_tcp_options(fd);
  }
  if (name->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, name, size) == 0 && ::listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int port_of(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
  const bool v6 = name.ss_family == AF_INET6;
  return ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                  : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

absl::Status listen_unix(const Address& address, std::vector<ListeningSocket>* sockets) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  address.path.copy(name.sun_path, sizeof name.sun_path - 1);  // long enough: claim() has checked the path's length
  const int fd = listen_at(reinterpret_cast<sockaddr*>(&name), sizeof name);
  if (fd < 0) return cannot_listen(address, errno);
  sockets->push_back({FileDescriptor(fd), true});
  return absl::OkStatus();
}

// Opens one socket per address of the host name; the wildcard address gets one socket for IPv4 and IPv6 together.
absl::Status listen_tcp(Address* address, std::vector<ListeningSocket>* sockets) {
  const bool everywhere = address->host == "0.0.0.0" || address->host == "::";
  const size_t before = sockets->size();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  int error = EADDRNOTAVAIL;
  for (const char* host : {everywhere ? "::" : address->host.c_str(), everywhere ? "0.0.0.0" : ""}) {
    addrinfo* found = nullptr;
    if (*host == '\0' || getaddrinfo(host, address->port.c_str(), &hints, &found) != 0) continue;
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      const int fd = listen_at(each->ai_addr, each->ai_addrlen);
      if (fd < 0) error = errno;
      if (fd < 0 && errno == EADDRINUSE) return cannot_listen(*address, EADDRINUSE);
      if (fd < 0) continue;
      sockets->push_back({FileDescriptor(fd), false});
      if (address->port == "0") {  // use the same port for the remaining addresses
        address->port = absl::StrCat(port_of(fd));
        break;
      }
    }
    if (sockets->size() != before) return absl::OkStatus();
  }
  return cannot_listen(*address, error);
}

}  // namespace

void set_tcp_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMilliseconds, sizeof kUserTimeoutMilliseconds);
}

absl::StatusOr<std::vector<ListeningSocket>> open_listening_sockets(std::vector<Address>* addresses) {
  std::vector<ListeningSocket> sockets;
  for (size_t i = 0; i < addresses->size(); ++i) {
    Address& address = (*addresses)[i];
    absl::Status status = claim(address);
    if (status.ok()) status = address.is_unix() ? listen_unix(address, &sockets) : listen_tcp(&address, &sockets);
    if (status.ok()) continue;
    for (size_t bound = 0; bound < i; ++bound) {
      if ((*addresses)[bound].is_unix()) unlink((*addresses)[bound].path.c_str());
    }
    return status;
  }
  return sockets;
}

std::string peer_of(const sockaddr_storage& name) {
  char text[INET6_ADDRSTRLEN] = "";
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  if (name.ss_family != AF_INET6) return "unix:";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
  const int port = ntohs(v6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", port);
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return absl::StrCat("ipv6:[", text, "]:", port);
}

}  // namespace tt::server
