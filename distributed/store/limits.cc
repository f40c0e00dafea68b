#include "distributed/store/limits.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace tt::distributed {

absl::Status check_key(absl::string_view key) {
  if (key.size() <= kMaxKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("[store] expected a key of at most ", kMaxKeyBytes, " bytes, got ", key.size()));
}

absl::Status check_keys(absl::Span<const std::string> keys) {
  if (keys.size() > kMaxKeysPerCall) {
    return absl::InvalidArgumentError(
        absl::StrCat("[store] expected at most ", kMaxKeysPerCall, " keys in one call, got ", keys.size()));
  }
  for (const std::string& key : keys) {
    if (absl::Status status = check_key(key); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status check_value(absl::string_view value) {
  if (value.size() <= kMaxValueBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("[store] expected a value of at most ", kMaxValueBytes, " bytes, got ", value.size()));
}

absl::Status check_pairs(absl::Span<const std::string> keys, absl::Span<const std::string> values) {
  if (keys.size() != values.size()) {
    return absl::InvalidArgumentError(absl::StrCat("[store] expected as many values as keys, got ", keys.size(),
                                                   " keys and ", values.size(), " values"));
  }
  if (absl::Status status = check_keys(keys); !status.ok()) return status;
  for (const std::string& value : values) {
    if (absl::Status status = check_value(value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status check_token(absl::string_view token) {
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!token.empty() && printable) return absl::OkStatus();
  return absl::InvalidArgumentError(token.empty() ? "[store] expected a token, got an empty string"
                                                  : "[store] expected a token of printable ASCII characters");
}

absl::Status check_address(absl::string_view address, bool any_port) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon != absl::string_view::npos && colon > 0 && absl::SimpleAtoi(address.substr(colon + 1), &port) &&
      port < 65536 && (any_port || port > 0) && address.find_first_of("/ ,") == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("[store] expected an address 'host:port', got ", quoted(address)));
}

absl::Status check_member(absl::string_view group, int rank) {
  if (group.size() > kMaxGroupBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("[store] expected a group name of at most ", kMaxGroupBytes, " bytes, got ", group.size()));
  }
  if (rank >= 0 && rank <= kMaxRank) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("[store] expected a rank from 0 to ", kMaxRank, ", got ", rank));
}

std::string quoted(absl::string_view key) {
  constexpr size_t kShown = 64;
  return absl::StrCat("'", printable(key, kShown), key.size() > kShown ? "...'" : "'");
}

std::string list_keys(absl::Span<const std::string> keys) {
  constexpr size_t kShown = 8;  // a status message travels in a header of limited size
  std::string text;
  for (size_t i = 0; i < std::min(keys.size(), kShown); ++i) absl::StrAppend(&text, i ? ", " : "", quoted(keys[i]));
  if (keys.size() > kShown) absl::StrAppend(&text, " and ", keys.size() - kShown, " more");
  return text;
}

}  // namespace tt::distributed
