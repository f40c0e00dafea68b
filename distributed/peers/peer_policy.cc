#include "distributed/peers/peer_policy.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tt::distributed {
namespace {

constexpr int kPortsTried = 64;  // before listening on a port that the policy allows fails

std::string refusal(const std::string& address) {
  return absl::StrCat("expected an address that the engine's options --peer-networks and --peer-ports allow, got ",
                      address);
}

absl::Status refused(const std::string& address) { return absl::PermissionDeniedError(refusal(address)); }

struct Parts {
  std::string host;  // without brackets
  int port = 0;
};

std::optional<Parts> split(absl::string_view address) {
  const size_t colon = address.rfind(':');
  Parts parts;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &parts.port) || parts.port < 0 ||
      parts.port > 65535) {
    return std::nullopt;
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) return std::nullopt;
  parts.host = std::string(host);
  return parts;
}

std::string join(absl::string_view host, int port) {
  const bool is_v6 = host.find(':') != absl::string_view::npos;
  return is_v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

// Returns the address in network byte order; of an IPv4 address within IPv6 (::ffff:1.2.3.4), the IPv4 address.
absl::Span<const uint8_t> host_bytes(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const uint8_t*>(&v4), sizeof v4};
  }
  if (address.ss_family != AF_INET6) return {};
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  absl::Span<const uint8_t> bytes(v6.s6_addr, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6)) bytes.remove_prefix(12);
  return bytes;
}

int port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

bool is_unspecified(const sockaddr_storage& address) {
  const absl::Span<const uint8_t> bytes = host_bytes(address);
  return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
}

std::string numeric(const sockaddr_storage& address, int port) {
  char host[NI_MAXHOST] = "";
  const socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return join(host, port);
}

// Returns the addresses of a host; none if its name is not known.
std::vector<sockaddr_storage> look_up(const Parts& parts) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  std::vector<sockaddr_storage> addresses;
  if (getaddrinfo(parts.host.c_str(), absl::StrCat(parts.port).c_str(), &hints, &found) != 0) return addresses;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    std::memcpy(&addresses.emplace_back(), each->ai_addr, std::min<size_t>(each->ai_addrlen, sizeof(sockaddr_storage)));
  }
  return addresses;
}

bool shares_prefix(absl::Span<const uint8_t> a, const uint8_t* b, int bits) {
  const auto whole = static_cast<size_t>(bits / 8);
  if (std::memcmp(a.data(), b, whole) != 0) return false;
  const int rest = bits % 8;
  return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

}  // namespace

bool PeerPolicy::Network::is_loopback() const {
  const uint8_t v6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  if (family == AF_INET) return prefix >= 8 && bytes[0] == 127;
  return prefix == 128 && std::memcmp(bytes, v6, sizeof v6) == 0;
}

PeerPolicy PeerPolicy::any() {
  PeerPolicy policy;
  policy.any_ = true;
  return policy;
}

absl::StatusOr<PeerPolicy> PeerPolicy::parse(absl::Span<const std::string> networks,
                                             absl::Span<const std::string> ports) {
  PeerPolicy policy;
  for (const std::string& text : networks) {
    Network network;
    const std::string host = text.substr(0, text.find('/'));
    network.family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
    const int bits = network.family == AF_INET ? 32 : 128;
    network.prefix = bits;
    const bool has_prefix = host.size() < text.size();
    if (inet_pton(network.family, host.c_str(), network.bytes) != 1 ||
        (has_prefix && !absl::SimpleAtoi(text.substr(host.size() + 1), &network.prefix)) || network.prefix < 0 ||
        network.prefix > bits) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a network such as 10.0.0.0/8 or fd00::/8, got '", text, "'"));
    }
    policy.networks_.push_back(network);
  }
  for (const std::string& text : ports) {
    const size_t dash = text.find('-');
    std::pair<int, int> range;
    const bool is_number = absl::SimpleAtoi(text.substr(0, dash), &range.first);
    range.second = range.first;
    if (!is_number || (dash != std::string::npos && !absl::SimpleAtoi(text.substr(dash + 1), &range.second)) ||
        range.first < 1 || range.second > 65535 || range.first > range.second) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected ports such as 29500 or 20000-20999, from 1 to 65535, got '", text, "'"));
    }
    policy.ports_.push_back(range);
  }
  return policy;
}

bool PeerPolicy::allows_port(int port) const {
  return std::any_of(ports_.begin(), ports_.end(), [&](const auto& p) { return port >= p.first && port <= p.second; });
}

bool PeerPolicy::allows_host(const sockaddr_storage& address) const {
  const absl::Span<const uint8_t> bytes = host_bytes(address);
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    return bytes.size() == (network.family == AF_INET ? 4u : 16u) &&
           shares_prefix(bytes, network.bytes, network.prefix);
  });
}

bool PeerPolicy::allows(const sockaddr_storage& address) const {
  if (host_bytes(address).empty()) return false;
  return any_ || (allows_host(address) && allows_port(port_of(address)));
}

bool PeerPolicy::may_listen_on(const sockaddr_storage& address) const {
  if (!is_unspecified(address)) return allows_host(address);
  return std::any_of(networks_.begin(), networks_.end(), [](const Network& n) { return !n.is_loopback(); });
}

absl::StatusOr<std::string> PeerPolicy::resolve(const std::string& address) const {
  if (any_) return address;
  const std::optional<Parts> parts = split(address);
  if (networks_.empty() || !parts || !allows_port(parts->port)) return refused(address);
  const std::vector<sockaddr_storage> found = look_up(*parts);
  if (found.empty()) return absl::NotFoundError(refusal(address));
  for (const sockaddr_storage& each : found) {
    if (allows(each)) return numeric(each, parts->port);
  }
  return refused(address);
}

absl::Status PeerPolicy::check_network(const std::string& address) const {
  if (any_) return absl::OkStatus();
  const std::optional<Parts> parts = split(address);
  if (networks_.empty() || !parts) return refused(address);
  const std::vector<sockaddr_storage> found = look_up(*parts);
  if (found.empty()) return absl::NotFoundError(refusal(address));
  const bool is_allowed = std::any_of(found.begin(), found.end(), [&](const auto& a) { return allows_host(a); });
  return is_allowed ? absl::OkStatus() : refused(address);
}

absl::Status PeerPolicy::listen(const std::string& address,
                                const std::function<absl::Status(const std::string&)>& listen) const {
  if (any_) return listen(address);
  const std::optional<Parts> parts = split(address);
  if (networks_.empty() || !parts || ports_.empty() || (parts->port != 0 && !allows_port(parts->port))) {
    return refused(address);
  }
  const std::vector<sockaddr_storage> found = look_up(*parts);
  const auto host = std::find_if(found.begin(), found.end(), [&](const auto& a) { return may_listen_on(a); });
  if (host == found.end()) return refused(address);
  if (parts->port != 0) return listen(numeric(*host, parts->port));
  int64_t total = 0;
  for (const auto& [first, last] : ports_) total += last - first + 1;
  absl::Status status;
  for (int i = 0; i < kPortsTried; ++i) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return absl::InternalError("getrandom failed");
    auto at = static_cast<int64_t>(random % static_cast<uint64_t>(total));
    auto range = ports_.begin();
    while (at > range->second - range->first) {
      at -= range->second - range->first + 1;
      ++range;
    }
    status = listen(numeric(*host, range->first + static_cast<int>(at)));
    if (!absl::IsUnavailable(status)) break;
  }
  return status;
}

}  // namespace tt::distributed
