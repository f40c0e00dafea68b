// default_socket(): the default unix socket of a user's engine, for listening and for connecting.
#pragma once

#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/user_folder.h"

namespace tt {

// Returns $XDG_RUNTIME_DIR/teletensor/engine.sock. Without that variable, returns a path in a per-host folder under the
// user's state folder ($XDG_STATE_HOME, else ~/.local/state), since homes may be shared between hosts. Other users
// cannot create these folders first. If the path is too long for a socket address, returns a path in
// /tmp/teletensor-<uid>, which both sides check like any other folder.
inline std::string default_socket() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return std::string(runtime) + "/teletensor/engine.sock";
  const std::string state = user_folder(UserFolder::kState);
  char host[65] = "localhost";
  gethostname(host, sizeof host - 1);
  std::string socket = state + "/teletensor/run-" + host + "/engine.sock";
  if (!state.empty() && socket.size() < sizeof(sockaddr_un::sun_path)) return socket;
  return "/tmp/teletensor-" + std::to_string(getuid()) + "/engine.sock";
}

}  // namespace tt
