// Listener: the engine's services on its addresses.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/address.h"
#include "server/rpc/auth.h"
#include "server/session/sessions.h"

namespace tt::server {

class Listener {
 public:
  struct Options {
    std::vector<Address> addresses;
    bool open_reflection = false;  // gRPC's reflection service asks for no token
    size_t connections_per_address = 256;
  };

  // Listens at once. Fails, in one clear line, where that is not possible. `exit` is what Admin.Drain calls; `auth` and
  // `sessions` outlive the Listener.
  static absl::StatusOr<std::unique_ptr<Listener>> start(const Options& options, const Auth& auth, Sessions& sessions,
                                                         std::function<void()> exit);
  ~Listener();

  // Where it listens: the ports that 0 stood for are known now.
  const std::vector<Address>& addresses() const { return addresses_; }
  // Accepts nothing more, lets running frames go on for `patience`, cancels what is left, frees all sessions, and ends
  // every call. Waits for all of it: a call into a library is not interrupted.
  void shut_down(std::chrono::milliseconds patience = {});
  // Removes its sockets' names. For a process that ends without waiting any further; any thread.
  void remove_sockets() const;

 private:
  struct Impl;
  Listener(std::unique_ptr<Impl> impl, std::vector<Address> addresses);
  std::unique_ptr<Impl> impl_;
  std::vector<Address> addresses_;
};

}  // namespace tt::server
