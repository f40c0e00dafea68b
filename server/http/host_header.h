// Whether a Host header names this host by a loopback address. Other clients than browsers may omit it. Thread-safe.
#pragma once

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace tt::server {

inline bool names_loopback(absl::string_view host) {
  if (absl::StartsWith(host, "[::1]") || host.empty()) return true;
  host = host.substr(0, host.find(':'));
  if (absl::EqualsIgnoreCase(host, "localhost")) return true;
  return absl::StartsWith(host, "127.") && host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

}  // namespace tt::server
