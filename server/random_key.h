// random_key: the tokens and keys that name something and protect it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tt::server {

// Returns 256 random bits as 64 hexadecimal digits. Returns UNAVAILABLE if getrandom fails. Thread-safe.
absl::StatusOr<std::string> random_key();

}  // namespace tt::server
