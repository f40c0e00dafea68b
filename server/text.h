// text: converts text from clients to UTF-8 for proto strings and logs.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tt::server {

// Returns at most `max_bytes` bytes of `text`, cut between characters. A byte that is not valid UTF-8 is written as
// an escape sequence such as "\xff".
std::string valid_utf8(absl::string_view text, size_t max_bytes = absl::string_view::npos);

}  // namespace tt::server
