// Metadata of calls. gRPC ends the process for a value with a character that is not printable ASCII, so every value of
// a user, a file or an engine is checked here before.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "engine/schema/error.h"

namespace tt::client {

// Whether all characters are printable ASCII.
inline bool is_metadata_value(std::string_view text) {
  for (char c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

// Adds an entry to a grpc::ClientContext. Throws Error (kValue) if the value has other characters; the message does not
// contain the value, which may be a secret.
template <typename Context>
void add_metadata(Context& context, const char* name, const std::string& value) {
  check(ErrorKind::kValue, is_metadata_value(value), "[connect] expected printable ASCII characters in ", name,
        ", got others");
  context.AddMetadata(name, value);
}

}  // namespace tt::client
