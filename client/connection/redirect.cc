#include "client/connection/redirect.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tt::client {
namespace {

constexpr size_t kKeyBytes = 64;
constexpr size_t kMaxSocketPath = 107;

absl::Status malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the engine's redirect to a worker is malformed: ", why));
}

std::string with_port(const std::string& host, uint32_t port) {
  return host.find(':') == host.npos ? absl::StrCat(host, ":", port) : absl::StrCat("[", host, "]:", port);
}

}  // namespace

absl::StatusOr<Address> address_of_worker(const Address& engine, const v1::Redirect& redirect) {
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
