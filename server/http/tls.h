// HttpTls: the TLS side of the HTTP listener's connections, with a certificate that may be replaced.
//
// With authorities of clients, a certificate of another authority or a revoked one ends the handshake; a client without
// one is admitted, because probes have none, and the listener asks has_certificate() before it answers other requests.
//
// Owned and used by the listener's thread. The files are checked for a change at most once per second, when a
// connection arrives; a pair that is incomplete or invalid is logged, and the previous one stays in use. Not
// thread-safe.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/certificate.h"

namespace tt::server {

struct SslDeleter {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslPointer = std::unique_ptr<SSL, SslDeleter>;

class HttpTls {
 public:
  // Reads the certificate and the key. The message of an error is one line that names the file.
  static absl::StatusOr<std::unique_ptr<HttpTls>> load(const TlsFiles& files);

  // Returns the server's side of a connection on a non-blocking socket, which the caller keeps open. Null if memory is
  // exhausted.
  SslPointer accept(int socket);

  bool requires_certificate() const { return !files_.authorities.empty(); }
  // Whether the client has presented a certificate that the authorities signed. Called after the handshake.
  static bool has_certificate(const SSL* ssl);

 private:
  using Clock = std::chrono::steady_clock;
  using Stamps = std::array<FileStamp, 4>;

  explicit HttpTls(TlsFiles files) : files_(std::move(files)) {}
  Stamps stamps() const;
  absl::Status read();
  void read_if_changed();

  const TlsFiles files_;
  Stamps stamps_{};  // of the certificate, the key, the authorities and their revocation lists when they were read
  Clock::time_point checked_{};
  std::unique_ptr<SSL_CTX, SslDeleter> context_;
};

}  // namespace tt::server
