#include "client/connection/address.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string first_word(const std::string& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

}  // namespace

bool is_local(const Address& address) {
  std::string_view text = address.text;
  return text.starts_with("unix:") || text.starts_with("127.") || text.starts_with("localhost:") ||
         text.starts_with("[::1]:");
}

Address parse_address(std::string_view text) {
  if (text.starts_with("unix:")) {
    check(ErrorKind::kValue, text.size() > 5, "[connect] expected a path after 'unix:', got '", text, "'");
    std::string_view path = text.substr(5);
    if (path.starts_with("///")) path.remove_prefix(2);  // a URI with an empty host
    return {std::string(text), std::string(text), std::string(path)};
  }
  // The last colon precedes the port, unless it is inside the brackets of an IPv6 address.
  size_t colon = text.rfind(':');
  if (colon != text.npos && text.find(']', colon) != text.npos) colon = text.npos;
  std::string host(text.substr(0, colon));
  int port = kDefaultPort;
  bool good = !host.empty() && host.find_first_of("/ ") == host.npos;
  if (colon != text.npos) {
    good = good && absl::SimpleAtoi(std::string(text.substr(colon + 1)), &port) && port > 0 && port < 65536;
  }
  check(ErrorKind::kValue, good, "[connect] expected 'host:port' or 'unix:PATH', got '", text, "'");
  return {absl::StrCat(host, ":", port), absl::StrCat("dns:///", host, ":", port), ""};
}

std::string token_file() {
  if (std::string named = environment("TELETENSOR_TOKEN_FILE"); !named.empty()) return named;
  std::string config = environment("XDG_CONFIG_HOME");
  if (config.empty()) config = environment("HOME") + "/.config";
  return config + "/teletensor/token";
}

std::string find_token(const std::string& given) {
  if (!given.empty()) return given;
  std::string token = environment("TELETENSOR_TOKEN");
  if (!token.empty()) return token;
  return first_word(token_file());
}

// The token file belongs to this user's own engine, so it is not sent to another host.
std::string find_admin_token(const std::string& given, const Address& address) {
  if (!given.empty()) return given;
  if (std::string token = environment("TELETENSOR_ADMIN_TOKEN"); !token.empty()) return token;
  if (std::string named = environment("TELETENSOR_ADMIN_TOKEN_FILE"); !named.empty()) return first_word(named);
  if (!is_local(address)) return "";
  std::string file = token_file();
  return first_word(file.substr(0, file.rfind('/') + 1) + "admin-token");
}

}  // namespace tt::client
