// Redirect: where a session is opened, if the engine serves its principals in worker processes or in other engines.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/address.h"
#include "proto/wire.h"

namespace tt::client {

// Returns the address to which the engine at `engine` redirects. A worker is on the same host, is reached in the same
// way (unix socket, TCP, TLS) and is recognised by the same certificate, whatever the redirect says. Another engine is
// reached by TLS if `engine` is, and is recognised by the redirect's fingerprint, or by the authorities by which
// `engine` would be. INVALID_ARGUMENT if the redirect is malformed. The key is not checked.
absl::StatusOr<Address> redirected_address(const Address& engine, const v1::Redirect& redirect);

// Returns INVALID_ARGUMENT unless the redirect has a key that can be sent.
absl::Status check_key(const v1::Redirect& redirect);

}  // namespace tt::client
