// PeerPolicy: the other hosts and ports that an engine may contact, or listen on, at a session's request.
//
// A session names such addresses when it serves a store, forms a group, or copies between engines; and so do the other
// ranks, whose addresses arrive through the store. A shared engine that followed them without a policy would be a proxy
// into its network for everybody with a token. Immutable, so thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tt::distributed {

class PeerPolicy {
 public:
  // Every address and port: for an engine that runs as its only client's user.
  static PeerPolicy any();
  // Allows nothing.
  PeerPolicy() = default;
  // Networks are addresses with an optional length of the prefix: "10.0.0.0/8", "::1". Ports are numbers from 1 to
  // 65535 and ranges: "29500", "20000-20999". INVALID_ARGUMENT with the text that is neither.
  static absl::StatusOr<PeerPolicy> parse(absl::Span<const std::string> networks, absl::Span<const std::string> ports);

  // Whether the engine may connect to an IPv4 or IPv6 address and its port. False for other families.
  bool allows(const sockaddr_storage& address) const;

  // Returns an address "host:port" in a form that can be connected to without another look-up of its name, which could
  // have another result: its first numeric address that is allowed. any() returns it unchanged.
  // PERMISSION_DENIED with one text for every address that is not allowed; NOT_FOUND with the same text if the name is
  // not known, perhaps not yet. Blocks while the name is looked up.
  absl::StatusOr<std::string> resolve(const std::string& address) const;
  // OK if the engine may serve peers that reach it on the network of "host:port", whatever the port. Otherwise like
  // resolve().
  absl::Status check_network(const std::string& address) const;
  // Calls listen("host:port") until it returns OK or an error other than UNAVAILABLE. If the port of `address` is 0,
  // the ports are drawn from the policy's; the system chooses for any(). The unspecified addresses (0.0.0.0, ::)
  // listen on all interfaces, and require a network other than the loopback network. PERMISSION_DENIED as in resolve().
  absl::Status listen(const std::string& address, const std::function<absl::Status(const std::string&)>& listen) const;

 private:
  struct Network {
    sa_family_t family = AF_INET;
    uint8_t bytes[16] = {};
    int prefix = 0;  // length in bits
    bool is_loopback() const;
  };

  bool allows_port(int port) const;
  bool allows_host(const sockaddr_storage& address) const;
  bool may_listen_on(const sockaddr_storage& address) const;

  bool any_ = false;
  std::vector<Network> networks_;
  std::vector<std::pair<int, int>> ports_;  // first and last
};

}  // namespace tt::distributed
