// Trust: by what a client recognises an engine that it connects to with TLS, as ssh recognises hosts.
//
// An engine's certificate is checked by its fingerprint, if one is given or remembered for its address, otherwise by
// the authorities that sign certificates. The file of remembered fingerprints has lines "ADDRESS FINGERPRINT".
#pragma once

#include <string>

#include "client/connection/address.h"

namespace tt::client {

struct TrustOptions {
  // If empty, TELETENSOR_TLS_FINGERPRINT, _CA, _CERTIFICATE and _KEY are used.
  std::string fingerprint;  // of the engine's certificate
  std::string ca;           // PEM file of authorities, instead of the system's
  std::string certificate;  // PEM files by which the client identifies itself
  std::string key;
};

// Sets `address->trust`. Does nothing for an address without TLS. Throws Error (kValue) if an option is malformed, if
// only one of certificate and key is given, or if options are given for an address without TLS.
void choose_trust(const TrustOptions& options, Address* address);

// Remembers the fingerprint by which the engine was recognised, if the user gave it. Called after a successful
// connection. A file that cannot be written is ignored: the fingerprint is then needed again.
void remember(const Address& address);

// Returns the path of the file of remembered fingerprints: TELETENSOR_KNOWN_ENGINES, else teletensor/known_engines in
// the user's configuration folder.
std::string known_engines_file();

// Returns why a connection to the engine failed, if its certificate, or a missing one, is the reason: what was expected
// and received, and what to do. Connects to the engine, without sending anything, for at most two seconds. Empty if the
// reason is another one.
std::string explain_failure(const Address& address);

}  // namespace tt::client
