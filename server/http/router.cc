#include "server/http/router.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tt::server {
namespace {

constexpr absl::string_view kHeaders[] = {"authorization", "host", "if-none-match"};

constexpr char kInvalid[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
constexpr char kMethod[] =
    "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

// A request in memory, and its answer.
class MemoryStream final : public httplib::Stream {
 public:
  MemoryStream(std::string request, const std::string& peer) : request_(std::move(request)), peer_(peer) {}
  const std::string& answer() const { return answer_; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    const size_t count = std::min(size, request_.size() - read_);
    std::memcpy(bytes, request_.data() + read_, count);
    read_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    answer_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = peer_;
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  const std::string request_;
  const std::string& peer_;
  std::string answer_;
  size_t read_ = 0;
};

// Returns the request with only the headers of kHeaders, or an empty string if it is invalid.
std::string reduce(absl::string_view request) {
  std::string reduced;
  for (absl::string_view line : absl::StrSplit(request, "\r\n")) {
    // Other control characters are not allowed anywhere (RFC 9110, 5.5).
    if (std::any_of(line.begin(), line.end(),
                    [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
      return "";
    }
    if (reduced.empty()) {
      if (line.empty()) return "";
      absl::StrAppend(&reduced, line, "\r\n");
      continue;
    }
    const absl::string_view name = line.substr(0, std::min(line.find(':'), line.size()));
    const bool is_used = std::any_of(std::begin(kHeaders), std::end(kHeaders),
                                     [&](absl::string_view each) { return absl::EqualsIgnoreCase(each, name); });
    if (is_used) absl::StrAppend(&reduced, line, "\r\n");
  }
  return reduced + "\r\n";
}

}  // namespace

Router::Router() {
  // cpp-httplib would send the exception's text to the peer.
  set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
    response.status = 500;
    response.set_content("internal error\n", "text/plain; charset=utf-8");
  });
}

std::string Router::answer(absl::string_view request, const std::string& peer) {
  std::string reduced = reduce(request);
  if (reduced.empty()) return kInvalid;
  if (!absl::StartsWith(reduced, "GET ") && !absl::StartsWith(reduced, "HEAD ")) return kMethod;
  MemoryStream stream(std::move(reduced), peer);
  bool closed = false;
  process_request(stream, /*close_connection=*/true, closed, nullptr);
  return stream.answer();
}

}  // namespace tt::server
