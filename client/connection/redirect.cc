#include "client/connection/redirect.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/connection/trust.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

constexpr size_t kKeyBytes = 64;
constexpr size_t kMaxSocketPath = 107;
constexpr size_t kMaxPlace = 300;

absl::Status malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the engine's redirect is malformed: ", why));
}

std::string with_port(const std::string& host, uint32_t port) {
  return host.find(':') == host.npos ? absl::StrCat(host, ":", port) : absl::StrCat("[", host, "]:", port);
}

absl::StatusOr<Address> address_of_engine(const Address& engine, const v1::Redirect& redirect) {
  const std::string& place = redirect.address();
  // parse_address() accepts more: sockets, schemes, and addresses without a port.
  const bool is_place = place.size() <= kMaxPlace && place.find("//") == place.npos && place.rfind("unix:", 0) != 0 &&
                        place.find(':') != place.npos && std::all_of(place.begin(), place.end(), absl::ascii_isgraph);
  if (!is_place) return malformed("expected the address of an engine");
  if (engine.tls && !redirect.tls()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the engine redirects this connection with TLS to ", place, " without TLS"));
  }
  try {
    Address next = parse_address(absl::StrCat(redirect.tls() ? "teletensors://" : "", place));
    if (!next.tls) return next;
    if (engine.tls) {
      next.trust.files = engine.trust.files;
    } else {
      choose_trust({}, &next);  // authorities and fingerprints of the environment and the user's file
    }
    if (redirect.fingerprint().empty()) return next;
    absl::StatusOr<std::string> fingerprint = parse_fingerprint(redirect.fingerprint());
    if (!fingerprint.ok()) return malformed(fingerprint.status().message());
    next.trust.fingerprint = *std::move(fingerprint);
    next.trust.is_new = false;
    return next;
  } catch (const Error& error) {
    return malformed(error.message());
  }
}

}  // namespace

absl::StatusOr<Address> redirected_address(const Address& engine, const v1::Redirect& redirect) {
  if (!redirect.address().empty()) return address_of_engine(engine, redirect);
  Address worker = engine;
  if (!engine.socket.empty()) {
    const std::string& path = redirect.socket();
    if (path.empty() || path[0] != '/' || path.size() > kMaxSocketPath || path.find('\0') != path.npos) {
      return malformed("expected the path of a socket");
    }
    worker.socket = path;
    worker.text = absl::StrCat("unix:", path);
    worker.target = worker.text;
    return worker;
  }
  if (redirect.port() < 1 || redirect.port() > 65535) {
    return malformed(absl::StrCat("expected a port from 1 to 65535, got ", redirect.port()));
  }
  const std::string place = with_port(engine.host, redirect.port());
  worker.port = static_cast<int>(redirect.port());
  worker.text = absl::StrCat(engine.tls ? "teletensors://" : "", place);
  worker.target = parse_address(worker.text).target;
  return worker;
}

absl::Status check_key(const v1::Redirect& redirect) {
  const std::string& key = redirect.key();
  if (key.size() == kKeyBytes && std::all_of(key.begin(), key.end(), absl::ascii_isxdigit)) return absl::OkStatus();
  return malformed(absl::StrCat("expected a key of ", kKeyBytes, " hexadecimal digits"));
}

}  // namespace tt::client
