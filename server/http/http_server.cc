#include "server/http/http_server.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "server/http/connections.h"
#include "server/http/host_header.h"
#include "server/http/inference_paths.h"
#include "server/http/page.h"
#include "server/http/router.h"
#include "server/http/tls.h"

namespace tt::server {
namespace {

using httplib::Request;
using httplib::Response;

// Of a listener that serves models.
constexpr size_t kInferenceConnections = InferenceServer::kRestPlaces;
constexpr int kInferenceThreads = 16;
constexpr uint64_t kMaxBodies = uint64_t{1} << 30;

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kJson[] = "application/json";
// The page consists of three files of this server and requests data from it, and nothing else.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? text : "null";
}

nlohmann::json to_json(const std::vector<GpuMonitor::Gpu>& gpus) {
  nlohmann::json all = nlohmann::json::array();
  for (const GpuMonitor::Gpu& gpu : gpus) {
    nlohmann::json each = {{"index", gpu.index}, {"uuid", gpu.uuid}, {"name", gpu.name}};
    if (gpu.utilization) each["utilization"] = *gpu.utilization;
    if (gpu.used_bytes) each["used_bytes"] = *gpu.used_bytes;
    if (gpu.total_bytes) each["total_bytes"] = *gpu.total_bytes;
    all.push_back(std::move(each));
  }
  return all;
}

// The requests' handlers. Owned by HttpServer.
class Handlers {
 public:
  Handlers(const HttpServer::Sources& sources, bool is_local) : sources_(sources), is_local_(is_local) {}

  void add_to(Router& router) {
    router.Get("/healthz", [](const Request&, Response& response) { response.set_content("ok\n", kText); });
    router.Get("/readyz", [this](const Request&, Response& response) { ready(response); });
    add_data(router, "/metrics", [this](const Principal&, Response& response) {
      response.set_content(sources_.metrics.text(), "text/plain; version=0.0.4; charset=utf-8");
    });
    add_data(router, "/api/status", [this](const Principal& caller, Response& response) {
      const auto gpus = sources_.gpus == nullptr ? std::vector<GpuMonitor::Gpu>() : sources_.gpus->gpus();
      response.set_content(absl::StrCat("{\"status\":", to_json(sources_.status.reply_to(caller)),
                                        ",\"gpus\":", to_json(gpus).dump(), "}"),
                           kJson);
    });
    // Without sampling the reply has no entries, and the rate 0.
    add_data(router, "/api/profile", [this](const Principal&, Response& response) {
      response.set_content(to_json(sources_.status.profile().value_or(v1::ProfileReply())), kJson);
    });
    for (const PageFile& file : page_files()) {
      router.Get(file.path, [&file](const Request& request, Response& response) { send(file, request, response); });
    }
  }

 private:
  using Data = std::function<void(const Principal& caller, Response& response)>;

  // Adds a path whose data concerns all principals.
  void add_data(Router& router, const char* path, Data data) {
    router.Get(path, [this, data = std::move(data)](const Request& request, Response& response) {
      const absl::StatusOr<Principal> caller = observer(request);
      if (caller.ok()) return data(*caller, response);
      const bool unknown = absl::IsUnauthenticated(caller.status());
      response.status = unknown ? 401 : 403;
      if (unknown) response.set_header("WWW-Authenticate", "Bearer");
      response.set_content(absl::StrCat(caller.status().message(), "\n"), kText);
      sources_.audit.refused(request.remote_addr, caller.status());
    });
  }

  absl::StatusOr<Principal> observer(const Request& request) const {
    const std::string authorization = request.get_header_value("Authorization");
    absl::StatusOr<Principal> caller = sources_.auth.caller({authorization});
    if (!caller.ok()) return caller;
    if (caller->role == Role::kUser) {
      return absl::PermissionDeniedError("this requires a token of the role observer or operator");
    }
    if (!sources_.auth.required() && is_local_ && !names_loopback(request.get_header_value("Host"))) {
      return absl::PermissionDeniedError("expected an address with localhost or 127.0.0.1");
    }
    return caller;
  }

  void ready(Response& response) const {
    const bool ready = sources_.sessions.accepts();
    response.status = ready ? 200 : 503;
    response.set_content(ready ? "ok\n" : "the engine accepts no more sessions\n", kText);
  }

  static void send(const PageFile& file, const Request& request, Response& response) {
    response.headers.erase("Cache-Control");
    response.set_header("Cache-Control", "no-cache");  // may be kept, but is compared with the engine's before each use
    response.set_header("ETag", std::string(file.etag));
    response.set_header("Content-Security-Policy", kPolicy);
    response.set_header("Referrer-Policy", "no-referrer");
    if (request.get_header_value("If-None-Match") == file.etag) {
      response.status = 304;
    } else {
      response.set_content(file.content.data(), file.content.size(), std::string(file.type));
    }
  }

  const HttpServer::Sources sources_;
  const bool is_local_;  // listens on a loopback address
};

constexpr absl::string_view kNoCertificate = "this engine requires a certificate of the client (--tls-client-ca)";

// Refuses what is not a probe, and records it.
HttpConnections::Body refuse_uncertified(absl::string_view head, const std::string& peer, AuditLog& audit) {
  const absl::Status status = absl::UnauthenticatedError(kNoCertificate);
  HttpConnections::Body body;
  body.refusal = absl::StrCat("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: ", kText,
                              "\r\nContent-Length: ", kNoCertificate.size() + 1, "\r\n\r\n");
  if (!absl::StartsWith(head, "HEAD ")) absl::StrAppend(&body.refusal, kNoCertificate, "\n");
  audit.refused(peer, status);
  return body;
}

bool is_probe(absl::string_view request) {
  return (absl::ConsumePrefix(&request, "GET ") || absl::ConsumePrefix(&request, "HEAD ")) &&
         (absl::StartsWith(request, "/healthz ") || absl::StartsWith(request, "/readyz "));
}

}  // namespace

struct HttpServer::Impl {
  Impl(const Sources& sources, bool is_local) : handlers(sources, is_local) { handlers.add_to(router); }
  Handlers handlers;
  Router router;
  std::optional<InferencePaths> inference;
  std::unique_ptr<HttpConnections> connections;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl, std::string url) : impl_(std::move(impl)), url_(std::move(url)) {}

HttpServer::~HttpServer() = default;

std::vector<int> HttpServer::sockets() const { return impl_->connections->sockets(); }

void HttpServer::finish(std::chrono::milliseconds idle, std::chrono::milliseconds timeout) {
  impl_->connections->finish(idle, timeout);
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const Address& address, const TlsFiles& tls,
                                                              const Sources& sources,
                                                              std::vector<InheritedSocket> inherited) {
  if (address.is_unix()) return absl::InvalidArgumentError("expected HOST:PORT for HTTP, got a unix socket");
  std::unique_ptr<HttpTls> encryption;
  if (!tls.certificate.empty()) {
    auto loaded = HttpTls::load(tls);
    if (!loaded.ok()) return loaded.status();
    encryption = *std::move(loaded);
  }
  const bool encrypted = encryption != nullptr;
  auto impl = std::make_unique<Impl>(sources, address.is_local());
  impl->router.set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
  Address actual = address;
  std::vector<ListeningSocket> sockets;
  for (InheritedSocket& each : inherited) {
    actual = each.address;
    sockets.push_back({std::move(each.fd), false});
  }
  HttpConnections::Options options;
  if (sources.inference != nullptr) {
    impl->inference.emplace(*sources.inference, sources.auth, sources.audit, address.is_local());
    options.connections = kInferenceConnections;
    options.per_address = kInferenceConnections / 2;
    options.body_threads = kInferenceThreads;
    options.max_body_threads = static_cast<int>(kInferenceConnections);
    options.body_bytes = std::min<uint64_t>(sources.inference->options().inflight_bytes, kMaxBodies);
    // Those of inference count among the requests in progress, with a share of each caller, and reach no limit here.
    options.waiting_bytes = 2 * std::min<uint64_t>(sources.inference->options().inflight_bytes, SIZE_MAX / 2);
  }
  auto admit = [&impl = *impl, &audit = sources.audit](absl::string_view head, const std::string& peer,
                                                       bool certified) {
    if (!certified && !is_probe(head)) return refuse_uncertified(head, peer, audit);
    return impl.inference ? impl.inference->admit(head, peer) : HttpConnections::Body();
  };
  auto connections = HttpConnections::start(
      &actual, std::move(encryption), options,
      [&impl = *impl](const std::string& request, const std::string& peer, const std::function<bool()>& is_cancelled) {
        return impl.inference && InferencePaths::has(request)
                   ? impl.inference->answer(request, peer, is_cancelled)
                   : HttpConnections::Reply{impl.router.answer(request, peer)};
      },
      &is_probe, std::move(admit), std::move(sockets));
  if (!connections.ok()) return connections.status();
  impl->connections = *std::move(connections);
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(impl), absl::StrCat(encrypted ? "https://" : "http://", actual.to_string())));
}

}  // namespace tt::server
