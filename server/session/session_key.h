// SessionKey: the secret that names a session on the wire. The engine keeps only its digest, so that neither its memory
// of idle sessions nor an image contains what resumes a session.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "proto/sha256.h"

namespace tt::server {

// Keys have 256 random bits, so a digest without salt does not reveal them.
inline std::string digest_of_key(absl::string_view key) { return Sha256::of({key.data(), key.size()}); }

}  // namespace tt::server
