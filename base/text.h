// Text from other processes: valid_utf8() for proto strings and JSON, printable() for logs, terminals and pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tt {
namespace text_internal {

// Returns the length in bytes of the first UTF-8 character of `text`; 0 if the encoding is invalid (RFC 3629: no
// surrogates, no overlong encodings).
inline size_t character_length(absl::string_view text) {
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

// Requires that `character` is one valid UTF-8 character.
inline uint32_t code_point(absl::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  uint32_t code = character.size() == 1 ? byte(0) : byte(0) & (0x7fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3fu);
  return code;
}

// Whether a character controls a terminal, ends a line for some readers, or changes the direction of the text around
// it.
inline bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// "\n", "\x1b", "\u202e", as in Python.
inline std::string escaped(uint32_t code) {
  switch (code) {
    case '\t': return "\\t";
    case '\n': return "\\n";
    case '\r': return "\\r";
    default: break;
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = code < 0x100 ? "\\x" : "\\u";
  for (int shift = code < 0x100 ? 4 : 12; shift >= 0; shift -= 4) text += kDigits[code >> shift & 15];
  return text;
}

inline std::string converted(absl::string_view text, size_t max_bytes, bool escapes_controls) {
  std::string result;
  while (!text.empty()) {
    const size_t length = character_length(text);
    absl::string_view part = text.substr(0, length);
    std::string escape;
    if (length == 0) {
      part = escape = escaped(static_cast<unsigned char>(text[0]));
    } else if (const uint32_t code = code_point(part); escapes_controls && is_control(code)) {
      part = escape = escaped(code);
    }
    if (result.size() + part.size() > max_bytes) break;
    result.append(part.data(), part.size());
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace text_internal

// Returns at most `max_bytes` bytes of `text`, cut between characters. A byte that is not valid UTF-8 is written as
// an escape sequence such as "\xff".
inline std::string valid_utf8(absl::string_view text, size_t max_bytes = absl::string_view::npos) {
  return text_internal::converted(text, max_bytes, false);
}

// The same, with escape sequences also for control characters, line and paragraph separators and marks of
// bidirectional text: a text that its reader did not write cannot forge lines, control the terminal or reorder the text
// around it. printable(printable(text)) is printable(text). `_printable.py` does the same in Python.
inline std::string printable(absl::string_view text, size_t max_bytes = absl::string_view::npos) {
  return text_internal::converted(text, max_bytes, true);
}

}  // namespace tt
