// Limits of a store. The client checks a call's limits before it sends the call; the store checks all of them.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tt::distributed {

inline constexpr size_t kMaxKeyBytes = size_t{4} << 10;
inline constexpr size_t kMaxValueBytes = size_t{8} << 20;
// All pairs, with kPairOverhead bytes for each. The keys of waiting calls have a limit of the same size.
inline constexpr size_t kMaxTotalBytes = size_t{256} << 20;
inline constexpr size_t kPairOverhead = 128;
inline constexpr size_t kMaxKeysPerCall = 65536;
// Members in all groups together, and members that have left groups that still have members.
inline constexpr size_t kMaxMembers = 65536;
inline constexpr size_t kMaxGroupBytes = size_t{1} << 10;
inline constexpr int kMaxRank = 8191;           // each departure is reported to all members of the group
inline constexpr size_t kMaxReasonBytes = 256;  // longer reasons are cut
// Keys and values in one message, except that one value of the maximum size always fits. RemoteStore splits calls.
inline constexpr size_t kMaxPartBytes = size_t{8} << 20;
// compare_set has two values.
inline constexpr size_t kMaxMessageBytes = 2 * kMaxValueBytes + (size_t{1} << 20);

// Return INVALID_ARGUMENT with the limit and the size.
absl::Status check_key(absl::string_view key);
absl::Status check_keys(absl::Span<const std::string> keys);
absl::Status check_value(absl::string_view value);
absl::Status check_pairs(absl::Span<const std::string> keys, absl::Span<const std::string> values);
// A token is sent in a header: printable ASCII, not empty.
absl::Status check_token(absl::string_view token);
// Expects "host:port", with port 0 if `any_port`.
absl::Status check_address(absl::string_view address, bool any_port);
absl::Status check_member(absl::string_view group, int rank);

// Returns the key in quotes for a message: escaped, and shortened to about 64 characters.
std::string quoted(absl::string_view key);
// Returns the first keys, quoted, and the number of the others.
std::string list_keys(absl::Span<const std::string> keys);

}  // namespace tt::distributed
