#include "client/connection/peer.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tt::client {
namespace {

std::string user_name(uid_t user) {
  char buffer[1024];
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(user, &entry, buffer, sizeof buffer, &found);
  return found ? absl::StrCat(found->pw_name, " (uid ", user, ")") : absl::StrCat("uid ", user);
}

absl::StatusOr<uid_t> user_number(absl::string_view text) {
  uint32_t number;
  if (absl::SimpleAtoi(text, &number)) return number;
  char buffer[1024];
  passwd entry;
  passwd* found = nullptr;
  getpwnam_r(std::string(text).c_str(), &entry, buffer, sizeof buffer, &found);
  if (!found) {
    return absl::InvalidArgumentError(
        absl::StrCat("TELETENSOR_ENGINE_USER: expected user names or numeric user ids, got '", text, "'"));
  }
  return found->pw_uid;
}

}  // namespace

absl::StatusOr<int> connect_unix(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a socket path of at most ", sizeof name.sun_path - 1, " characters, got ", path.size()));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) return fd;
  absl::Status status = absl::UnavailableError(std::strerror(errno));
  if (fd >= 0) close(fd);
  return status;
}

absl::StatusOr<std::vector<uid_t>> trusted_users() {
  std::vector<uid_t> users = {geteuid(), 0};
  const char* named = std::getenv("TELETENSOR_ENGINE_USER");
  for (absl::string_view text : absl::StrSplit(named ? named : "", ',', absl::SkipWhitespace())) {
    absl::StatusOr<uid_t> user = user_number(absl::StripAsciiWhitespace(text));
    if (!user.ok()) return user.status();
    users.push_back(*user);
  }
  return users;
}

absl::Status check_peer(int socket, const std::string& address) {
  ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot determine the user of the engine at ", address, ": ", std::strerror(errno)));
  }
  absl::StatusOr<std::vector<uid_t>> trusted = trusted_users();
  if (!trusted.ok()) return trusted.status();
  if (std::find(trusted->begin(), trusted->end(), peer.uid) != trusted->end()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("expected an engine that runs as ", user_name(geteuid()),
                                                  " or root at ", address, ", found one that runs as ",
                                                  user_name(peer.uid), "; set TELETENSOR_ENGINE_USER=", peer.uid,
                                                  " to trust that user with your token and tensors"));
}

}  // namespace tt::client
