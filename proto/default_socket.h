// default_socket(): the default unix socket of a user's engine, for listening and for connecting.
#pragma once

#include <pwd.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace tt {

// Returns $XDG_RUNTIME_DIR/teletensor/engine.sock. Without that variable, returns a path in a per-host folder under the
// user's state folder ($XDG_STATE_HOME, else ~/.local/state), since homes may be shared between hosts. Other users
// cannot create these folders first. If the path is too long for a socket address, returns a path in
// /tmp/teletensor-<uid>, which both sides check like any other folder.
inline std::string default_socket() {
  auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string runtime = environment("XDG_RUNTIME_DIR"); !runtime.empty())
    return runtime + "/teletensor/engine.sock";
  std::string state = environment("XDG_STATE_HOME");
  if (state.empty()) {
    std::string home = environment("HOME");
    char buffer[1024];
    passwd entry;
    passwd* user = nullptr;
    if (home.empty() && getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &user) == 0 && user) home = user->pw_dir;
    if (!home.empty()) state = home + "/.local/state";
  }
  char host[65] = "localhost";
  gethostname(host, sizeof host - 1);
  std::string socket = state + "/teletensor/run-" + host + "/engine.sock";
  if (!state.empty() && socket.size() < sizeof(sockaddr_un::sun_path)) return socket;
  return "/tmp/teletensor-" + std::to_string(getuid()) + "/engine.sock";
}

}  // namespace tt
