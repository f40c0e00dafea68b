#include "server/text.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace tt::server {
namespace {

// Returns the length in bytes of the first UTF-8 character of `text`; 0 if the encoding is invalid (RFC 3629: no
// surrogates, no overlong encodings).
size_t character_length(absl::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return at(i) >= low && at(i) <= high;
  };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool ok = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2);
    return ok ? 3 : 0;
  }
  if (first < 0xf0 || first > 0xf4) return 0;
  return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
}

}  // namespace

std::string valid_utf8(absl::string_view text, size_t max_bytes) {
  std::string valid;
  valid.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const size_t length = character_length(text);
    if (length != 0) {
      if (valid.size() + length > max_bytes) break;
      valid.append(text.data(), length);
      text.remove_prefix(length);
      continue;
    }
    if (valid.size() + 4 > max_bytes) break;
    absl::StrAppendFormat(&valid, "\\x%02x", static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
  }
  return valid;
}

}  // namespace tt::server
