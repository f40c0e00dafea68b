#include "server/http/inference_paths.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "server/http/host_header.h"
#include "server/rpc/call_admission.h"

namespace tt::server {

// What is used of a request's line and headers.
struct InferencePaths::Head {
  std::string method, path;
  std::string authorization, host, origin;
  std::optional<uint64_t> content_length;
  size_t json_bytes = SIZE_MAX;
  bool keeps_open = false;
  bool wants_continue = false;
  bool is_encoded = false;                           // a transfer encoding
  ContentCoding coding = ContentCoding::kIdentity;   // of the body
  ContentCoding accepts = ContentCoding::kIdentity;  // for the answer
  bool is_valid = false;

  explicit Head(absl::string_view text);
};

InferencePaths::Head::Head(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, "\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.")) return;
  method = std::string(words[0]);
  path = std::string(words[1].substr(0, words[1].find('?')));
  keeps_open = words[2] != "HTTP/1.0";
  bool has_length = false;
  std::string accepted;
  for (size_t i = 1; i < lines.size(); ++i) {
    const absl::string_view line = lines[i];
    if (std::any_of(line.begin(), line.end(),
                    [](char c) { return c != '\t' && absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
      return;
    }
    if (line.empty()) continue;  // at the end
    const size_t colon = line.find(':');
    // A name with spaces, or a line that continues another one: proxies read them differently (RFC 9112, 5.1 and 5.2).
    if (colon == absl::string_view::npos || colon == 0 || line.substr(0, colon).find_first_of(" \t") != line.npos) {
      return;
    }
    const std::string name = absl::AsciiStrToLower(line.substr(0, colon));
    if ((name == "authorization" && !authorization.empty()) || (name == "host" && !host.empty()) ||
        (name == "origin" && !origin.empty())) {
      return;
    }
    const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
    uint64_t number = 0;
    if (name == "content-length") {
      if (has_length || value.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(value[0])) ||
          !absl::SimpleAtoi(value, &number)) {
        return;
      }
      has_length = true;
      content_length = number;
    } else if (name == "inference-header-content-length") {
      if (!absl::SimpleAtoi(value, &number)) return;
      json_bytes = number;
    } else if (name == "authorization") {
      authorization = std::string(value);
    } else if (name == "host") {
      host = std::string(value);
    } else if (name == "origin") {
      origin = std::string(value);
    } else if (name == "connection") {
      if (absl::EqualsIgnoreCase(value, "close")) keeps_open = false;
    } else if (name == "expect") {
      wants_continue = absl::EqualsIgnoreCase(value, "100-continue");
    } else if (name == "transfer-encoding") {
      is_encoded = is_encoded || !absl::EqualsIgnoreCase(value, "identity");
    } else if (name == "content-encoding") {
      // Two of them would be applied one after the other.
      coding = coding == ContentCoding::kIdentity ? parse_coding(value) : ContentCoding::kUnknown;
    } else if (name == "accept-encoding") {
      absl::StrAppend(&accepted, value, ",");  // several of them are one list (RFC 9110, 5.3)
    }
  }
  accepts = accepted_coding(accepted);
  is_valid = method == "GET" || method == "POST";
}

namespace {

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Payload Too Large";
    case 415: return "Unsupported Media Type";
    case 429: return "Too Many Requests";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Internal Server Error";
  }
}

std::string text_of(const RestResponse& response, bool keeps_open) {
  std::string text = absl::StrCat("HTTP/1.1 ", response.status, " ", reason_of(response.status),
                                  "\r\nContent-Type: ", response.type, "\r\nContent-Length: ", response.body.size(),
                                  "\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n");
  if (response.status == 429 || response.status == 503) absl::StrAppend(&text, "Retry-After: 1\r\n");
  if (response.status == 401) absl::StrAppend(&text, "WWW-Authenticate: Bearer\r\n");
  if (response.json_bytes != SIZE_MAX) {
    absl::StrAppend(&text, "Inference-Header-Content-Length: ", response.json_bytes, "\r\n");
  }
  if (response.coding != ContentCoding::kIdentity) {
    absl::StrAppend(&text, "Content-Encoding: ", coding_name(response.coding), "\r\nVary: Accept-Encoding\r\n");
  }
  absl::StrAppend(&text, "Connection: ", keeps_open ? "keep-alive" : "close", "\r\n\r\n", response.body);
  return text;
}

std::string refusal(int status, absl::string_view message) {
  RestResponse response;
  response.status = status;
  response.body = nlohmann::json({{"error", std::string(message)}}).dump();
  return text_of(response, false);
}

}  // namespace

bool InferencePaths::has(absl::string_view request) {
  const size_t space = request.find(' ');
  if (space == absl::string_view::npos) return false;
  const absl::string_view path = request.substr(space + 1, 4);
  return path == "/v2/" || path == "/v2 " || path == "/v2?";
}

// A page in the user's browser can send requests to this host, too. Only a token that it does not have shows that a
// request is not from such a page.
absl::Status InferencePaths::check(const Head& head) const {
  const absl::StatusOr<Principal> caller = server_.caller({head.authorization}, rest_right(head.path));
  if (!caller.ok()) return caller.status();
  const bool by_token = auth_.required() && !head.authorization.empty();
  if (by_token) return absl::OkStatus();
  if (is_local_ && !names_loopback(head.host)) {
    return absl::PermissionDeniedError("expected an address with localhost or 127.0.0.1");
  }
  if (!head.origin.empty() && head.method == "POST") {
    return absl::PermissionDeniedError("a page of another origin requires a token");
  }
  return absl::OkStatus();
}

HttpConnections::Body InferencePaths::admit(absl::string_view text, const std::string& peer) const {
  HttpConnections::Body body;
  if (!has(text)) return body;
  const Head head(text);
  if (!head.is_valid) {
    body.refusal = refusal(400, "expected a GET or POST request with valid headers");
    return body;
  }
  if (const absl::Status status = check(head); !status.ok()) {
    audit_.refused(peer, status);
    body.refusal = refusal(absl::IsUnauthenticated(status) ? 401 : 403, status.message());
    return body;
  }
  if (head.method == "GET") {
    // Its bytes would be read as the next request of the connection.
    if (head.is_encoded || head.content_length.value_or(0) != 0) {
      body.refusal = refusal(400, "expected a GET request without a body");
    }
    return body;
  }
  const size_t bytes = head.content_length.value_or(0);  // none: the request has no body (RFC 9112, 6.3)
  if (head.is_encoded) {
    body.refusal = refusal(411, "expected a body of a known length, without a transfer encoding");
  } else if (head.coding == ContentCoding::kUnknown) {
    body.refusal = refusal(415, "expected Content-Encoding to be gzip, deflate or identity");
  } else if (bytes > server_.options().request_bytes) {
    body.refusal = refusal(
        413, absl::StrCat("expected a body of at most ", server_.options().request_bytes, " bytes, got ", bytes));
  } else {
    body.bytes = bytes;
    body.is_slow = true;
    body.wants_continue = head.wants_continue;
  }
  return body;
}

HttpConnections::Reply InferencePaths::answer(const std::string& request, const std::string& peer,
                                              const std::function<bool()>& is_cancelled) {
  const size_t end = request.find("\r\n\r\n") + 4;
  const Head head(absl::string_view(request).substr(0, end));
  if (!head.is_valid) return {refusal(400, "expected a GET or POST request with valid headers")};
  RestRequest rest;
  rest.method = head.method;
  rest.path = head.path;
  rest.authorization = head.authorization;
  rest.json_bytes = head.json_bytes;
  rest.coding = head.coding;
  rest.accepts = head.accepts;
  rest.body = absl::string_view(request).substr(end);
  rest.address = address_of(peer);
  rest.is_local = rest.address == "127.0.0.1";
  rest.is_cancelled = [&] {
    return is_cancelled() || !server_.caller({rest.authorization}, rest_right(rest.path)).ok();
  };
  RestResponse response = answer_rest(server_, rest);
  std::string text = text_of(response, head.keeps_open);
  return {std::move(text), std::make_shared<InferenceServer::Kept>(
                               InferenceServer::Kept{std::move(response.charged), std::move(response.place)})};
}

}  // namespace tt::server
