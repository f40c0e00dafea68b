// Fuzz target: the HTTP router answers a request of arbitrary bytes. An answer is a status line and headers of this
// engine's, closes the connection, and contains nothing of the request but what a handler returns.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "server/http/router.h"
#include "tests/fuzz/require.h"

namespace {

constexpr char kPeer[] = "ipv4:127.0.0.1:1";

// With the kinds of handlers that HttpServer has: a fixed path, headers that are read, and one that throws.
tt::server::Router& router() {
  static tt::server::Router* const made = [] {
    auto* router = new tt::server::Router;
    router->Get("/", [](const httplib::Request& request, httplib::Response& response) {
      response.set_header("ETag", "\"1\"");
      if (request.get_header_value("If-None-Match") == "\"1\"") {
        response.status = 304;
      } else {
        response.set_content("page", "text/plain; charset=utf-8");
      }
    });
    router->Get("/metrics", [](const httplib::Request& request, httplib::Response& response) {
      tt::fuzz::require(request.remote_addr == kPeer, "the peer's address is the connection's");
      tt::fuzz::require(request.body.empty(), "a handler sees no body");
      if (!absl::StartsWith(request.get_header_value("Authorization"), "Bearer ")) response.status = 401;
    });
    router->Get("/throws", [](const httplib::Request&, httplib::Response&) { throw std::runtime_error("secret"); });
    return router;
  }();
  return *made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string request = std::string(reinterpret_cast<const char*>(data), size) + "\r\n\r\n";
  const std::string answer = router().answer(request, kPeer);
  if (answer.empty()) return 0;
  tt::fuzz::require(absl::StartsWith(answer, "HTTP/1.1 "), "an answer begins with a status line");
  tt::fuzz::require(answer.find("\r\n\r\n") != std::string::npos, "an answer has complete headers");
  tt::fuzz::require(absl::StrContains(answer, "Connection: close\r\n"), "an answer closes the connection");
  tt::fuzz::require(!absl::StrContains(answer, "secret"), "an answer does not have an exception's text");
  return 0;
}
