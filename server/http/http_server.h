// HttpServer: the engine's HTTP listener: probes, metrics, and a page that shows what the engine does.
//
//   /healthz                 200 while the process serves
//   /readyz                  200 while it accepts sessions, else 503
//   /metrics                 Prometheus's text format (metrics.h)
//   /, /page.css, /page.js   the page, which contains no data (page/)
//   /api/status              {"status": Admin.Status's reply, "gpus": [...]}, as JSON
//   /api/profile             Admin.Profile's reply, as JSON
//   /v2/...                  the Open Inference Protocol (server/serving/rest.h), if the engine serves models
//
// /metrics and /api/ require the token of an observer or operator, if tokens are required; otherwise, on a loopback
// address, a Host header that names this host, so that a web site cannot read them through the user's browser. The rest
// requires none: probes have no token, and a browser requests the page without one. With TLS and authorities of
// clients, all but the probes require a certificate of one of these, too. Only GET and HEAD are served, below /v2 also
// POST, with the rights that server/serving/rest.h states. Thread-safe; runs the threads of HttpConnections.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/certificate.h"
#include "server/admin/status.h"
#include "server/audit.h"
#include "server/http/gpu_monitor.h"
#include "server/http/metrics.h"
#include "server/rpc/address.h"
#include "server/rpc/auth.h"
#include "server/rpc/inherited_sockets.h"
#include "server/serving/inference_server.h"

namespace tt::server {

class HttpServer {
 public:
  // What the requests read. All references must outlive the server.
  struct Sources {
    const Auth& auth;
    AuditLog& audit;  // records refused requests
    const Sessions& sessions;
    const EngineStatus& status;
    const Metrics& metrics;
    const GpuMonitor* gpus = nullptr;      // null: no GPU's utilisation is known
    InferenceServer* inference = nullptr;  // answers /v2; null: there is no such path
  };

  // Listens on `address`, with TLS if `tls` has a certificate, which is read again when it changes. FAILED_PRECONDITION
  // with a one-line message if it cannot listen.
  // With `inherited` sockets of the address, it uses these.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(const Address& address, const TlsFiles& tls,
                                                           const Sources& sources,
                                                           std::vector<InheritedSocket> inherited = {});
  ~HttpServer();

  // See HttpConnections.
  std::vector<int> sockets() const;
  void finish(std::chrono::milliseconds idle, std::chrono::milliseconds timeout);

  // With the actual port.
  const std::string& url() const { return url_; }

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl, std::string url);
  std::unique_ptr<Impl> impl_;
  std::string url_;
};

}  // namespace tt::server
