#include "server/http/http_server.h"

#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <utility>

#define CPPHTTPLIB_OPENSSL_SUPPORT  // as the packaged library was compiled
#include <httplib.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr size_t kThreads = 4;
constexpr int kTimeoutSeconds = 2;
constexpr size_t kMaxBodyBytes = 1024;
constexpr size_t kRequestsPerConnection = 64;
constexpr char kText[] = "text/plain; charset=utf-8";

// Whether the request may read what concerns all principals.
absl::Status check_observer(const Auth& auth, const httplib::Request& request) {
  const std::string authorization = request.get_header_value("Authorization");
  const absl::StatusOr<Principal> caller = auth.caller({authorization});
  if (!caller.ok()) return caller.status();
  if (caller->role != Role::kUser) return absl::OkStatus();
  return absl::PermissionDeniedError("metrics require the role observer or operator");
}

}  // namespace

struct HttpServer::Impl {
  std::unique_ptr<httplib::Server> server;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl, std::string url) : impl_(std::move(impl)), url_(std::move(url)) {}

HttpServer::~HttpServer() {
  impl_->server->stop();
  impl_->thread.join();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const Address& address, const TlsFiles& tls,
                                                              const Auth& auth, const Sessions& sessions,
                                                              const Metrics& metrics) {
  auto impl = std::make_unique<Impl>();
  const bool encrypted = !tls.certificate.empty();
  if (encrypted) {
    impl->server = std::make_unique<httplib::SSLServer>(tls.certificate.c_str(), tls.key.c_str());
  } else {
    impl->server = std::make_unique<httplib::Server>();
  }
  httplib::Server& server = *impl->server;
  if (!server.is_valid()) return absl::FailedPreconditionError("cannot use the certificate for HTTP");
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kTimeoutSeconds, 0);
  server.set_write_timeout(kTimeoutSeconds, 0);
  server.set_keep_alive_max_count(kRequestsPerConnection);
  server.set_keep_alive_timeout(kTimeoutSeconds);
  server.set_payload_max_length(kMaxBodyBytes);
  server.set_socket_options([](int socket) {  // not SO_REUSEPORT: two engines must not share a port
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  server.set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
  server.Get("/healthz",
             [](const httplib::Request&, httplib::Response& response) { response.set_content("ok\n", kText); });
  server.Get("/readyz", [&sessions](const httplib::Request&, httplib::Response& response) {
    const bool ready = sessions.accepts();
    response.status = ready ? 200 : 503;
    response.set_content(ready ? "ok\n" : "the engine accepts no more sessions\n", kText);
  });
  server.Get("/metrics", [&auth, &metrics](const httplib::Request& request, httplib::Response& response) {
    if (const absl::Status status = check_observer(auth, request); !status.ok()) {
      const bool unknown = absl::IsUnauthenticated(status);
      response.status = unknown ? 401 : 403;
      if (unknown) response.set_header("WWW-Authenticate", "Bearer");
      response.set_content(absl::StrCat(status.message(), "\n"), kText);
      return;
    }
    response.set_content(metrics.text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  int port = 0;
  if (!absl::SimpleAtoi(address.port, &port)) return absl::InvalidArgumentError("expected a port");
  if (port == 0) {
    port = server.bind_to_any_port(address.host);
  } else if (!server.bind_to_port(address.host, port)) {
    port = -1;
  }
  if (port < 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.to_string(), " for HTTP"));
  }
  impl->thread = std::thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // stop() needs it
  Address actual = address;
  actual.port = absl::StrCat(port);
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(impl), absl::StrCat(encrypted ? "https://" : "http://", actual.to_string())));
}

}  // namespace tt::server
