#include "proto/version.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"

namespace tt {
namespace {

// Digits only: SimpleAtoi() accepts spaces and signs too.
bool parse_number(absl::string_view text, int* number) {
  return !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == text.npos &&
         absl::SimpleAtoi(text, number);
}

}  // namespace

absl::string_view own_version() { return TT_VERSION; }

absl::StatusOr<Version> parse_version(absl::string_view text) {
  Version version;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('.', 2));
  if (parts.size() >= 2 && parse_number(parts[0], &version.major) && parse_number(parts[1], &version.minor)) {
    return version;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected a version such as ", own_version(), ", got '", printable(text, 64), "'"));
}

absl::Status check_client_version(absl::string_view client) {
  const absl::StatusOr<Version> version = client.empty() ? kUnstatedVersion : parse_version(client);
  if (!version.ok()) return version.status();
  if (*version >= kOldestPeer) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this client, version ", client, ", is too old for the engine, version ", own_version(),
      ", which accepts clients from version ", kOldestPeer.major, ".", kOldestPeer.minor, " on: upgrade the client"));
}

absl::Status check_engine_version(absl::string_view engine, absl::string_view address) {
  const absl::StatusOr<Version> version = parse_version(engine);
  if (!version.ok())
    return absl::InvalidArgumentError(absl::StrCat("the engine at ", address, ": ", version.status().message()));
  if (*version >= kOldestPeer) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the engine at ", address, ", version ", engine, ", is too old for this client, version ",
                   own_version(), ", which works with engines from version ", kOldestPeer.major, ".", kOldestPeer.minor,
                   " on: upgrade the engine, or use an older client"));
}

}  // namespace tt
