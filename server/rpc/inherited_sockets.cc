#include "server/rpc/inherited_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/rpc/listening_sockets.h"
#include "server/rpc/socket_folder.h"

namespace tt::server {
namespace {

constexpr int kFirst = 3;  // after standard input, output and error
constexpr int kMost = 64;

// Removes a variable from the environment and returns its value.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

// An integer option of a socket; -1 if `fd` is not a socket.
int option_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

absl::StatusOr<Address> unix_address(const sockaddr_un& name, socklen_t size) {
  const size_t length = size - offsetof(sockaddr_un, sun_path);
  if (length == 0 || name.sun_path[0] != '/') {
    return absl::InvalidArgumentError("got a unix socket without an absolute path, to which every user can connect");
  }
  Address address;
  address.path = std::string(name.sun_path, strnlen(name.sun_path, length));
  if (absl::Status status = check_private_path(std::filesystem::path(address.path).parent_path()); !status.ok()) {
    return status;
  }
  return address;
}

Address tcp_address(const sockaddr_storage& name) {
  char text[INET6_ADDRSTRLEN] = "";
  Address address;
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    address.port = absl::StrCat(ntohs(v4.sin_port));
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    }
    address.port = absl::StrCat(ntohs(v6.sin6_port));
  }
  address.host = text;
  return address;
}

// Returns the address of a listening stream socket. The message of an error status says what was received instead.
absl::StatusOr<Address> address_of_listener(int fd) {
  const int type = option_of(fd, SO_TYPE);
  if (type < 0) return absl::InvalidArgumentError(errno == EBADF ? "it is not open" : "got another kind of file");
  if (type != SOCK_STREAM) return absl::InvalidArgumentError("got a socket of another type");
  if (option_of(fd, SO_ACCEPTCONN) != 1) {
    return absl::InvalidArgumentError("got a socket that does not listen; a socket unit must have Accept=no");
  }
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return absl::InvalidArgumentError(std::strerror(errno));
  }
  const bool is_tcp = name.ss_family == AF_INET || name.ss_family == AF_INET6;
  if (name.ss_family == AF_UNIX) return unix_address(reinterpret_cast<const sockaddr_un&>(name), size);
  if (!is_tcp || option_of(fd, SO_PROTOCOL) != IPPROTO_TCP) {
    return absl::InvalidArgumentError("got a socket that is neither TCP nor unix");
  }
  return tcp_address(name);
}

}  // namespace

absl::StatusOr<InheritedSocket> take_socket(int fd, absl::string_view name) {
  absl::StatusOr<Address> address = address_of_listener(fd);
  if (!address.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a listening stream socket, of TCP or with a path, as descriptor ", fd,
                     name.empty() ? "" : absl::StrCat(" (", name, ")"), ": ", address.status().message()));
  }
  InheritedSocket socket{FileDescriptor(fd), *std::move(address)};
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  if (!socket.address.is_unix()) set_tcp_options(fd);
  return socket;
}

absl::StatusOr<std::vector<InheritedSocket>> take_inherited_sockets() {
  const std::string pid = take_variable("LISTEN_PID");
  const std::string count = take_variable("LISTEN_FDS");
  const std::vector<std::string> names = absl::StrSplit(take_variable("LISTEN_FDNAMES"), ':');
  std::vector<InheritedSocket> sockets;
  if (pid != absl::StrCat(getpid())) return sockets;
  int number = 0;
  if (!absl::SimpleAtoi(count, &number) || number < 0 || number > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a number from 0 to ", kMost, " in LISTEN_FDS, got '", count, "'"));
  }
  for (int i = 0; i < number; ++i) {
    const auto at = static_cast<size_t>(i);
    absl::StatusOr<InheritedSocket> socket = take_socket(kFirst + i, at < names.size() ? names[at] : "");
    if (!socket.ok()) return socket.status();
    sockets.push_back(*std::move(socket));
  }
  return sockets;
}

}  // namespace tt::server
