#include "server/serving/byte_strings.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr size_t kLengthBytes = 4;

uint32_t length_of(const char* encoded) {
  uint32_t length = 0;
  std::memcpy(&length, encoded, kLengthBytes);  // all supported processors are little-endian
  return length;
}

}  // namespace

void append_string(absl::string_view text, std::string* encoded) {
  const auto length = static_cast<uint32_t>(text.size());
  encoded->append(reinterpret_cast<const char*>(&length), kLengthBytes);
  encoded->append(text.data(), text.size());
}

absl::StatusOr<uint64_t> longest_string(absl::Span<const char> encoded, uint64_t count) {
  uint64_t longest = 0, found = 0;
  for (size_t at = 0; at < encoded.size(); ++found) {
    const size_t left = encoded.size() - at;
    const uint64_t length = left < kLengthBytes ? 0 : length_of(encoded.data() + at);
    if (left < kLengthBytes || length > left - kLengthBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("[ModelInfer] expected strings, each after its length in 4 bytes, ", "got string ", found,
                       " with ", left, " bytes left"));
    }
    longest = std::max(longest, length);
    at += kLengthBytes + length;
  }
  if (found == count) return longest;
  return absl::InvalidArgumentError(absl::StrCat("[ModelInfer] expected ", count, " strings, got ", found));
}

void decode_strings(absl::Span<const char> encoded, size_t width, char* to) {
  for (size_t at = 0; at < encoded.size(); to += width) {
    const uint32_t length = length_of(encoded.data() + at);
    at += kLengthBytes;
    std::copy_n(encoded.data() + at, length, to);
    std::fill(to + length, to + width, '\0');
    at += length;
  }
}

std::string encode_strings(absl::string_view rows, size_t width) {
  std::string encoded;
  for (; !rows.empty(); rows.remove_prefix(width)) {
    const absl::string_view row = rows.substr(0, width);
    append_string(row.substr(0, row.find_last_not_of('\0') + 1), &encoded);
  }
  return encoded;
}

absl::string_view take_string(absl::string_view* encoded) {
  const absl::string_view text = encoded->substr(kLengthBytes, length_of(encoded->data()));
  encoded->remove_prefix(kLengthBytes + text.size());
  return text;
}

}  // namespace tt::server
