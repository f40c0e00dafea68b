// HttpServer: the engine's HTTP listener for probes and metrics.
//
// /healthz answers 200 while the process serves; /readyz answers 200 while it accepts sessions, else 503. Both need no
// token, because probes have none. /metrics requires the token of an observer or operator, if tokens are required.
// Requests have no body and few headers, so their size and time are limited; connections occupy one of kThreads threads
// each. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "proto/certificate.h"
#include "server/http/metrics.h"
#include "server/rpc/address.h"
#include "server/rpc/auth.h"

namespace tt::server {

class HttpServer {
 public:
  // Listens on `address`, with TLS if `tls` has a certificate, which is read once. All references must outlive the
  // server. FAILED_PRECONDITION with a one-line message if it cannot listen.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(const Address& address, const TlsFiles& tls,
                                                           const Auth& auth, const Sessions& sessions,
                                                           const Metrics& metrics);
  ~HttpServer();

  // With the actual port.
  const std::string& url() const { return url_; }

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl, std::string url);
  std::unique_ptr<Impl> impl_;
  std::string url_;
};

}  // namespace tt::server
