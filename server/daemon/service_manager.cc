#include "server/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr timeval kTimeout{5, 0};

// Returns 0 or the error number.
int send_datagram(const std::string& address, absl::string_view text) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address[0] != '/' && address[0] != '@') return EAFNOSUPPORT;
  if (address.size() >= sizeof name.sun_path) return ENAMETOOLONG;
  std::memcpy(name.sun_path, address.data(), address.size());
  if (address[0] == '@') name.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  const FileDescriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout);
  const ssize_t sent =
      sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&name), size);
  return sent < 0 ? errno : 0;
}

}  // namespace

ServiceManager::ServiceManager(bool is_service) {
  const char* address = std::getenv("NOTIFY_SOCKET");
  if (is_service && address != nullptr) address_ = address;
  unsetenv("NOTIFY_SOCKET");
}

void ServiceManager::ready(absl::string_view status) const { send(absl::StrCat("READY=1\nSTATUS=", status)); }

void ServiceManager::stopping(absl::string_view status) const { send(absl::StrCat("STOPPING=1\nSTATUS=", status)); }

void ServiceManager::replaced_by(pid_t process) const { send(absl::StrCat("MAINPID=", process)); }

void ServiceManager::send(absl::string_view state) const {
  if (!is_present()) return;
  const int error = send_datagram(address_, state);
  if (error != 0) spdlog::warn("cannot report to the service manager at {}: {}", address_, std::strerror(error));
}

}  // namespace tt::server
