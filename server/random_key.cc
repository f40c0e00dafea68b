#include "server/random_key.h"

#include <sys/random.h>

#include "absl/strings/escaping.h"

namespace tt::server {

absl::StatusOr<std::string> random_key() {
  char bits[32];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits)
    return absl::UnavailableError("cannot create a random key: getrandom failed");
  return absl::BytesToHexString({bits, sizeof bits});
}

}  // namespace tt::server
