#include "client/connection/address.h"

#include <arpa/inet.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/user_folder.h"
#include "client/connection/metadata.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Returns the text without the whitespace at its ends, which files and environment variables often have.
std::string_view stripped(std::string_view text) {
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

std::string checked_token(std::string_view text, std::string_view source) {
  const std::string_view token = stripped(text);
  check(ErrorKind::kValue, is_metadata_value(token), "[connect] expected a token of printable ASCII characters, ",
        source, " has others");
  return std::string(token);
}

std::string token_in_environment(const char* name) { return checked_token(environment(name), name); }

std::string first_word(const std::string& file) {
  std::string word;
  std::ifstream(file) >> word;
  return checked_token(word, file);
}

}  // namespace

bool is_local(const Address& address) {
  in_addr v4{};  // not the name of another host that begins with "127."
  const bool is_loopback = inet_pton(AF_INET, address.host.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
  return !address.socket.empty() || is_loopback || address.host == "localhost" || address.host == "::1";
}

Address parse_address(std::string_view given) {
  const std::string_view text = stripped(given);
  if (text.starts_with("unix:")) {
    check(ErrorKind::kValue, text.size() > 5 && text.find('\0') == text.npos,
          "[connect] expected a path after 'unix:', got '", text, "'");
    std::string_view path = text.substr(5);
    if (path.starts_with("///")) path.remove_prefix(2);  // a URI with an empty host
    return {std::string(text), std::string(text), std::string(path)};
  }
  std::string_view place = text, scheme;
  for (std::string_view known : {"teletensors://", "teletensor://"}) {
    if (!text.starts_with(known)) continue;
    scheme = known;
    place.remove_prefix(known.size());
    if (place.ends_with('/')) place.remove_suffix(1);
  }
  // The last colon precedes the port, unless it is inside the brackets of an IPv6 address.
  size_t colon = place.rfind(':');
  if (colon != place.npos && place.find(']', colon) != place.npos) colon = place.npos;
  std::string host(place.substr(0, colon));
  int port = kDefaultPort;
  bool good = !host.empty() && is_metadata_value(host) && host.find_first_of("/ ") == host.npos;
  if (colon != place.npos) {
    good = good && absl::SimpleAtoi(std::string(place.substr(colon + 1)), &port) && port > 0 && port < 65536;
  }
  check(ErrorKind::kValue, good, "[connect] expected 'host:port', 'teletensors://host:port' or 'unix:PATH', got '",
        text, "'");
  Address address{absl::StrCat(std::string(scheme), host, ":", port), absl::StrCat("dns:///", host, ":", port)};
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  address.host = bracketed ? host.substr(1, host.size() - 2) : host;
  address.port = port;
  address.tls = scheme == "teletensors://";
  return address;
}

std::string token_file() {
  std::string named = environment("TELETENSOR_TOKEN_FILE");
  return named.empty() ? token_file_in_configuration() : named;
}

std::string token_file_in_configuration() {
  const std::string config = user_folder(UserFolder::kConfig);
  return config.empty() ? "" : config + "/teletensor/token";
}

std::string find_token(const std::string& given) {
  if (std::string token = checked_token(given, "token"); !token.empty()) return token;
  if (std::string token = token_in_environment("TELETENSOR_TOKEN"); !token.empty()) return token;
  return first_word(token_file());
}

// The token file belongs to this user's own engine, so it is not sent to another host.
std::string find_admin_token(const std::string& given, const Address& address) {
  if (std::string token = checked_token(given, "admin_token"); !token.empty()) return token;
  if (std::string token = token_in_environment("TELETENSOR_ADMIN_TOKEN"); !token.empty()) return token;
  if (std::string named = environment("TELETENSOR_ADMIN_TOKEN_FILE"); !named.empty()) return first_word(named);
  if (!is_local(address)) return "";
  const std::string file = token_file();
  return file.empty() ? "" : first_word(file.substr(0, file.rfind('/') + 1) + "admin-token");
}

}  // namespace tt::client
