#include "client/connection/trust.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "engine/schema/error.h"
#include "proto/certificate.h"

namespace tt::client {
namespace {

constexpr std::chrono::milliseconds kExplainTimeout{2000};

std::string value_or_environment(const std::string& given, const char* variable) {
  if (!given.empty()) return given;
  const char* value = std::getenv(variable);
  return std::string(absl::StripAsciiWhitespace(value ? value : ""));
}

std::string place_of(const Address& address) { return absl::StrCat(address.host, ":", address.port); }

// The fingerprint that is remembered for "host:port"; the last line counts. Other lines (comments, lines that were not
// completely written) have no effect on those that follow. Empty: none.
std::string remembered(const std::string& place) {
  std::ifstream file(known_engines_file());
  std::string found;
  for (std::string line; std::getline(file, line);) {
    std::string name, fingerprint;
    const bool complete = static_cast<bool>(std::istringstream(line) >> name >> fingerprint);
    if (complete && absl::EqualsIgnoreCase(name, place)) found = fingerprint;  // as DNS compares names
  }
  return found;
}

bool ends_within_line(int fd) {
  struct stat status {};
  char last = '\n';
  return fstat(fd, &status) == 0 && status.st_size > 0 && pread(fd, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

}  // namespace

std::string known_engines_file() {
  if (const char* named = std::getenv("TELETENSOR_KNOWN_ENGINES"); named && *named) return named;
  const std::string token = token_file_in_configuration();
  return token.empty() ? "" : token.substr(0, token.rfind('/') + 1) + "known_engines";
}

void choose_trust(const TrustOptions& options, Address* address) {
  if (!address->tls) {
    const bool none = options.fingerprint.empty() && options.ca.empty() && options.certificate.empty();
    check(ErrorKind::kValue, none,
          "[connect] fingerprint, ca and certificate require TLS: expected an address like teletensors://host:7070, "
          "got '",
          address->text, "'");
    if (address->socket.empty()) {  // an address of this host may be a tunnel's
      const bool expects_tls = !value_or_environment("", "TELETENSOR_TLS_FINGERPRINT").empty() ||
                               (!is_local(*address) && !value_or_environment("", "TELETENSOR_TLS_CA").empty()) ||
                               !remembered(place_of(*address)).empty();
      check(ErrorKind::kValue, !expects_tls,
            "[connect] expected TLS, because a fingerprint or an authority is known for this connection: use "
            "teletensors://",
            place_of(*address), " instead of '", address->text, "'");
    }
    return;
  }
  Trust& trust = address->trust;
  trust.files.certificate = value_or_environment(options.certificate, "TELETENSOR_TLS_CERTIFICATE");
  trust.files.key = value_or_environment(options.key, "TELETENSOR_TLS_KEY");
  check(ErrorKind::kValue, trust.files.certificate.empty() == trust.files.key.empty(),
        "[connect] expected both certificate and key, or neither");
  trust.files.authorities = value_or_environment(options.ca, "TELETENSOR_TLS_CA");
  const std::string text = value_or_environment(options.fingerprint, "TELETENSOR_TLS_FINGERPRINT");
  const std::string known = text.empty() && trust.files.authorities.empty() ? remembered(place_of(*address)) : "";
  trust.is_new = !text.empty();
  if (text.empty() && known.empty()) return;
  absl::StatusOr<std::string> fingerprint = parse_fingerprint(text.empty() ? known : text);
  check(ErrorKind::kValue, fingerprint.ok(), "[connect] ", text.empty() ? known_engines_file() + ": " : "",
        fingerprint.status().message());
  trust.fingerprint = *std::move(fingerprint);
}

void remember(const Address& address) {
  if (!address.tls || !address.trust.is_new || remembered(place_of(address)) == address.trust.fingerprint) return;
  const std::string file = known_engines_file();
  if (file.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code error;
  if (!folder.empty() && std::filesystem::create_directories(folder, error)) chmod(folder.c_str(), 0700);
  const FileDescriptor fd(open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string line = absl::StrCat(fd && ends_within_line(fd.get()) ? "\n" : "", place_of(address), " ",
                                        address.trust.fingerprint, "\n");
  // One write, so that lines of several processes stay whole.
  [[maybe_unused]] const ssize_t written = fd ? write(fd.get(), line.data(), line.size()) : 0;
}

std::string explain_failure(const Address& address) {
  if (!address.socket.empty()) return "";
  const absl::StatusOr<std::string> presented = presented_certificate(address.host, address.port, kExplainTimeout);
  if (!address.tls) {
    if (!presented.ok()) return "";
    return absl::StrCat("the engine requires TLS; connect to teletensors://", place_of(address));
  }
  if (absl::IsFailedPrecondition(presented.status())) {
    return absl::StrCat("the server at ", place_of(address),
                        " does not speak TLS, or closed the connection; an engine without TLS has the address ",
                        place_of(address));
  }
  if (!presented.ok()) return "";
  const absl::StatusOr<std::string> fingerprint = fingerprint_of(*presented);
  if (!fingerprint.ok()) return "";
  const Trust& trust = address.trust;
  if (absl::Status validity = check_validity(*presented); !validity.ok()) return std::string(validity.message());
  if (trust.fingerprint.empty()) {
    // With a certificate that the authorities accept, the cause would be another one. It is shown here in any case.
    return absl::StrCat("the certificate of ", place_of(address), " could not be verified by ",
                        trust.files.authorities.empty() ? "this machine's authorities" : trust.files.authorities,
                        " for that name, or the engine requires a certificate of the client. Its fingerprint is ",
                        *fingerprint, "; if teletensord printed the same one at its start, connect with fingerprint=\"",
                        *fingerprint, "\" (or TELETENSOR_TLS_FINGERPRINT), which is remembered");
  }
  if (*fingerprint == trust.fingerprint) return "the engine requires another certificate of the client, or none";
  const std::string where = trust.is_new ? "" : absl::StrCat(" by ", known_engines_file());
  return absl::StrCat("THE CERTIFICATE OF ", place_of(address),
                      " HAS CHANGED, or another server answers in its place: "
                      "expected ",
                      trust.fingerprint, where, ", got ", *fingerprint,
                      ". Nothing was sent. If the engine's operator confirms the new certificate, connect with "
                      "fingerprint=\"",
                      *fingerprint, "\"");
}

}  // namespace tt::client
