// ServiceManager: reports the daemon's state to the service manager that started it, by the protocol of sd_notify(3).
//
// The protocol is one datagram per state. libsystemd, which implements it, is not used: Debian has no static library of
// it, and the shared one would add itself and three compression and cryptography libraries to every wheel and image.
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tt::server {

class ServiceManager {
 public:
  // Takes the address in NOTIFY_SOCKET and removes the variable, so that no child of this process reports states. With
  // `is_service` false nothing is reported: a private engine inherits the variable if its client is a service.
  explicit ServiceManager(bool is_service);

  // Whether a service manager waits for reports. Without one, the functions below do nothing.
  bool is_present() const { return !address_.empty(); }
  // Reports that the daemon serves, or that it shuts down. `status` is one line for people. A report that cannot be
  // sent within a few seconds is logged.
  void ready(absl::string_view status) const;
  void stopping(absl::string_view status) const;
  // Reports that another process serves from now on.
  void replaced_by(pid_t process) const;
  // For that process: the value of NOTIFY_SOCKET.
  const std::string& address() const { return address_; }

 private:
  void send(absl::string_view state) const;

  std::string address_;  // a path, or '@' and a name in the abstract namespace
};

}  // namespace tt::server
