// Text that clients sent, made fit for proto strings, which are UTF-8, and for logs.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tt::server {

// At most `most` bytes of `text`, cut between characters; bytes that are not UTF-8 are written as "\xff".
std::string valid_utf8(absl::string_view text, size_t most = absl::string_view::npos);

}  // namespace tt::server
