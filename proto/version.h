// version: which versions of clients and engines work together (docs/wire.md, "Versions").
//
// The newer of the two decides, because it knows the older one: each version states the oldest one that it works with.
// Thread-safe.
#pragma once

#include <compare>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tt {

struct Version {
  int major = 0, minor = 0;
  bool operator==(const Version&) const = default;
  auto operator<=>(const Version&) const = default;
};

// Of this client or engine: "0.1.0".
absl::string_view own_version();

// The oldest version of an engine with which this client works, and of a client that this engine accepts: at least the
// previous minor version. Change it with the version.
inline constexpr Version kOldestPeer{0, 1};
// Of a client that states no version. Clients have stated it since 0.1.
inline constexpr Version kUnstatedVersion{0, 1};

// Parses the beginning of "0.1.0": a patch does not change what works together. INVALID_ARGUMENT otherwise.
absl::StatusOr<Version> parse_version(absl::string_view text);

// For an engine: FAILED_PRECONDITION if a client of this version is too old, INVALID_ARGUMENT if the text is malformed.
// An empty text is kUnstatedVersion.
absl::Status check_client_version(absl::string_view client);
// The same for a client, of an engine. `address` is for the error.
absl::Status check_engine_version(absl::string_view engine, absl::string_view address);

}  // namespace tt
