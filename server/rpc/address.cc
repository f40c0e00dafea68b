#include "server/rpc/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "server/rpc/socket_folder.h"

namespace tt::server {
namespace {

absl::Status cannot_listen(const Address& address, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.to_string(), ": ", why));
}

bool answers(const sockaddr* address, socklen_t size) {
  const FileDescriptor fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && connect(fd.get(), address, size) == 0;
}

sockaddr_un name_of(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), std::min(path.size(), sizeof name.sun_path - 1));
  return name;
}

bool answers(const sockaddr_un& name) { return answers(reinterpret_cast<const sockaddr*>(&name), sizeof name); }

// Removes the sockets of workers (PATH.1, PATH.2, ...) whose engine was killed.
void remove_stale_sockets_of_workers(const std::filesystem::path& path) {
  std::error_code error;
  const std::string prefix = path.filename().native() + ".";
  for (const auto& each : std::filesystem::directory_iterator(path.parent_path(), error)) {
    const std::string name = each.path().filename().native();
    const bool is_worker =
        absl::StartsWith(name, prefix) && name.find_first_not_of("0123456789", prefix.size()) == name.npos;
    if (is_worker && each.is_socket(error) && !answers(name_of(each.path().native()))) unlink(each.path().c_str());
  }
}

absl::Status claim_unix(const Address& address) {
  const sockaddr_un name = name_of(address.path);
  if (address.path.size() >= sizeof name.sun_path)
    return cannot_listen(address, absl::StrCat("its path has ", address.path.size(), " characters; expected at most ",
                                               sizeof name.sun_path - 1, " characters"));
  std::filesystem::path folder = std::filesystem::path(address.path).parent_path();
  std::error_code error;
  if (!folder.empty() && std::filesystem::create_directories(folder, error)) chmod(folder.c_str(), 0700);
  if (error) return cannot_listen(address, error.message());
  if (absl::Status status = check_private_path(folder); !status.ok()) return cannot_listen(address, status.message());
  struct stat info;
  if (lstat(address.path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) return cannot_listen(address, "the path exists and is not a socket");
    if (answers(name)) return cannot_listen(address, "another engine is listening on it");
    if (unlink(address.path.c_str()) != 0) return cannot_listen(address, std::strerror(errno));
  }
  remove_stale_sockets_of_workers(address.path);
  return absl::OkStatus();
}

absl::Status claim_tcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  int failure = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (failure != 0) return cannot_listen(address, gai_strerror(failure));
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  // Like Acceptor::listen(), requires that at least one of the host's addresses can be bound and none is in use.
  int error = EADDRNOTAVAIL;
  bool bound = false;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const FileDescriptor fd(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd && bind(fd.get(), each->ai_addr, each->ai_addrlen) == 0) {
      bound = true;
    } else if (errno == EADDRINUSE) {
      return cannot_listen(address, "the port is in use");
    } else {
      error = errno;
    }
  }
  return bound ? absl::OkStatus() : cannot_listen(address, std::strerror(error));
}

}  // namespace

bool Address::is_local() const {
  in_addr v4{};  // not a name that begins with "127."
  const bool is_loopback = inet_pton(AF_INET, host.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
  return is_unix() || is_loopback || host == "localhost" || host == "::1";
}

std::string Address::to_string() const {
  if (is_unix()) return absl::StrCat("unix:", path);
  bool v6 = host.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<Address> parse_address(absl::string_view text) {
  auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrCat("expected unix:PATH or HOST:PORT, got '", text, "'"));
  };
  Address address;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    if (rest.empty()) return wrong();
    address.path = std::filesystem::absolute(std::string(rest)).native();
    return address;
  }
  size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return wrong();
  absl::string_view host = rest.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) return wrong();
  int port = 0;
  if (!absl::SimpleAtoi(rest.substr(colon + 1), &port) || port < 0 || port > 65535) return wrong();
  address.host = std::string(host);
  address.port = absl::StrCat(port);
  return address;
}

absl::Status claim(const Address& address) { return address.is_unix() ? claim_unix(address) : claim_tcp(address); }

}  // namespace tt::server
