// Certificates of engines and clients: checks of their files, fingerprints, and certificates that sign themselves.
//
// A fingerprint is "sha256:" and the SHA-256 of the certificate (DER) in lower-case hexadecimal digits. All functions
// are thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tt {

// PEM files. They are read again within a few seconds of a change, so that certificates can be replaced without a
// restart. A server uses a new certificate once its key is there, too (proto/checked_files.h).
struct TlsFiles {
  std::string certificate;  // the certificate, followed by those that lead to its authority; empty: none
  std::string key;
  std::string authorities;    // of the peers' certificates; empty: none
  std::string revocations{};  // of those authorities, which servers check (proto/revocations.h); empty: none

  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

// What identifies the contents of a file: its time of change, inode and size. All zero if there is no file.
using FileStamp = std::array<int64_t, 4>;
FileStamp stamp_of(const std::string& file);

// Returns the contents of a PEM file of at most 1 MiB. The message of an error names the file.
absl::StatusOr<std::string> read_pem(const std::string& file);

// Checks that `certificate` and `key` are PEM files, that the key belongs to the first certificate, and that this
// certificate is valid now. The message of an error is one line that names the file.
absl::Status check_certificate(const std::string& certificate, const std::string& key);
// Checks that `file` is a PEM file with at least one certificate.
absl::Status check_authorities(const std::string& file);

// Returns the fingerprint of the first certificate of a PEM text.
absl::StatusOr<std::string> fingerprint_of(absl::string_view pem);
// Accepts 64 hexadecimal digits, with or without "sha256:" and colons between the bytes; returns a fingerprint.
absl::StatusOr<std::string> parse_fingerprint(absl::string_view text);
// Returns OK while the first certificate of a PEM text is valid, else a message with the date.
absl::Status check_validity(absl::string_view pem);

// Creates a P-256 key (mode 0600) and a certificate signed by it, valid for ten years, for this host's name,
// "localhost" and the loopback addresses. If both files exist, does nothing; several processes may call it at once.
absl::Status create_self_signed(const std::string& certificate, const std::string& key);

// Connects by TLS to `host`, without any check, and returns the certificate that the server presents (PEM), to show it.
// Nothing is sent after the handshake. UNAVAILABLE if nothing accepts the connection within `timeout`,
// FAILED_PRECONDITION if the server does not speak TLS.
absl::StatusOr<std::string> presented_certificate(const std::string& host, int port, std::chrono::milliseconds timeout);

}  // namespace tt
