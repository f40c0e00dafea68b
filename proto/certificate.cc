#include "proto/certificate.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "base/free_with.h"

namespace tt {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr long kSelfSignedSeconds = 10L * 365 * 24 * 3600;
constexpr char kPrefix[] = "sha256:";

using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using TlsContext = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using TlsConnection = std::unique_ptr<SSL, FreeWith<SSL_free>>;

absl::Status failed(absl::string_view what, const std::string& file, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot ", what, " ", file, ": ", why));
}

Bio reader(absl::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(std::min<size_t>(text.size(), INT_MAX))));
}

// Null if the text has no certificate.
Certificate parse_certificate(absl::string_view pem) {
  Certificate certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

std::string to_pem(X509* certificate) {
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string date_of(const ASN1_TIME* time) {
  std::tm parts{};
  char text[32] = "";
  if (ASN1_TIME_to_tm(time, &parts) == 1) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

absl::Status check_dates(X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate expired on ", date_of(X509_get0_notAfter(certificate))));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate is valid from ", date_of(X509_get0_notBefore(certificate))));
  }
  return absl::OkStatus();
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 && *name ? name : "localhost";
}

bool add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

Certificate sign_itself(EVP_PKEY* key) {
  Certificate certificate(X509_new());
  std::unique_ptr<BIGNUM, FreeWith<BN_free>> serial(BN_new());
  if (!certificate || !serial || BN_rand(serial.get(), 120, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1) return nullptr;
  BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get()));
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -300);  // clocks differ
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kSelfSignedSeconds);
  X509_set_pubkey(certificate.get(), key);
  const std::string host = host_name();
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const std::string shown = host.substr(0, 64);  // the maximum of a common name
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(shown.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate.get(), name);
  const std::string names = absl::StrCat("DNS:localhost,IP:127.0.0.1,IP:::1",
                                         host == "localhost" ? "" : ",DNS:", host == "localhost" ? "" : host);
  const bool complete = add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                        add_extension(certificate.get(), NID_subject_alt_name, names) &&
                        X509_sign(certificate.get(), key, EVP_sha256()) > 0;
  return complete ? std::move(certificate) : nullptr;
}

// Writes a new file, which other processes see complete or not at all. An existing file is kept.
absl::Status write_new(const std::string& file, const std::string& text, mode_t mode) {
  const std::string draft = absl::StrCat(file, ".", getpid());
  FileDescriptor fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return failed("write", file, std::strerror(errno));
  const bool written = write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool linked = written && (link(draft.c_str(), file.c_str()) == 0 || errno == EEXIST);
  absl::Status status = linked ? absl::OkStatus() : failed("write", file, std::strerror(errno));
  unlink(draft.c_str());
  return status;
}

// Waits until the descriptor is ready, or `until`.
bool wait_ready(int fd, short events, std::chrono::steady_clock::time_point until) {
  pollfd watched{fd, events, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    const int ready = poll(&watched, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

FileDescriptor connect_tcp(const std::string& host, int port, std::chrono::steady_clock::time_point until) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return FileDescriptor(-1);
  const std::unique_ptr<addrinfo, FreeWith<freeaddrinfo>> owner(found);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    FileDescriptor fd(socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) continue;
    if (connect(fd.get(), each->ai_addr, each->ai_addrlen) != 0) {
      int error = errno;
      socklen_t size = sizeof error;
      if (error != EINPROGRESS || !wait_ready(fd.get(), POLLOUT, until)) continue;
      if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) continue;
    }
    return fd;
  }
  return FileDescriptor(-1);
}

}  // namespace

FileStamp stamp_of(const std::string& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) return {};
  return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, static_cast<int64_t>(info.st_ino), info.st_size};
}

absl::StatusOr<std::string> read_pem(const std::string& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) return failed("read", file, error.message());
  if (size > kMaxFileBytes) return failed("read", file, absl::StrCat("expected at most 1 MiB, got ", size, " bytes"));
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) return failed("read", file, std::strerror(errno));
  return text;
}

absl::Status check_certificate(const std::string& certificate, const std::string& key) {
  absl::StatusOr<std::string> text = read_pem(certificate), secret = read_pem(key);
  if (!text.ok()) return text.status();
  if (!secret.ok()) return secret.status();
  const Certificate parsed = parse_certificate(*text);
  if (!parsed) return failed("use", certificate, "expected a certificate in PEM format");
  const auto no_password = [](char*, int, int, void*) { return -1; };  // keys with a password cannot be used unattended
  const Key pair(PEM_read_bio_PrivateKey(reader(*secret).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!pair) return failed("use", key, "expected a private key in PEM format without a password");
  const bool belongs = X509_check_private_key(parsed.get(), pair.get()) == 1;
  ERR_clear_error();
  if (!belongs) return failed("use", key, absl::StrCat("it is not the key of the certificate in ", certificate));
  absl::Status dates = check_dates(parsed.get());
  return dates.ok() ? dates : failed("use", certificate, dates.message());
}

absl::Status check_authorities(const std::string& file) {
  absl::StatusOr<std::string> text = read_pem(file);
  if (!text.ok()) return text.status();
  return parse_certificate(*text) ? absl::OkStatus() : failed("use", file, "expected certificates in PEM format");
}

absl::StatusOr<std::string> fingerprint_of(absl::string_view pem) {
  const Certificate certificate = parse_certificate(pem);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (!certificate || X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1) {
    return absl::InvalidArgumentError("expected a certificate in PEM format");
  }
  return absl::StrCat(
      kPrefix, absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), static_cast<size_t>(size)}));
}

absl::StatusOr<std::string> parse_fingerprint(absl::string_view text) {
  std::string digits = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  if (absl::string_view rest = digits; absl::ConsumePrefix(&rest, kPrefix)) digits = std::string(rest);
  digits = absl::StrReplaceAll(digits, {{":", ""}});
  if (digits.size() == 64 && digits.find_first_not_of("0123456789abcdef") == digits.npos) return kPrefix + digits;
  return absl::InvalidArgumentError(
      absl::StrCat("expected a fingerprint such as sha256:, followed by 64 hexadecimal digits, got '", text, "'"));
}

absl::Status check_validity(absl::string_view pem) {
  const Certificate certificate = parse_certificate(pem);
  return certificate ? check_dates(certificate.get())
                     : absl::InvalidArgumentError("expected a certificate in PEM format");
}

absl::Status create_self_signed(const std::string& certificate, const std::string& key) {
  std::error_code error;
  if (std::filesystem::exists(certificate, error) && std::filesystem::exists(key, error)) return absl::OkStatus();
  const std::filesystem::path folder = std::filesystem::path(key).parent_path();
  if (!folder.empty() && std::filesystem::create_directories(folder, error)) chmod(folder.c_str(), 0700);
  // The key comes first; of several processes, all use the key of the first.
  if (!std::filesystem::exists(key, error)) {
    const Key pair(EVP_EC_gen("P-256"));
    const Bio out(BIO_new(BIO_s_mem()));
    if (!pair || PEM_write_bio_PKCS8PrivateKey(out.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
      return failed("create", key, "OpenSSL failed");
    }
    char* data = nullptr;
    const long size = BIO_get_mem_data(out.get(), &data);
    absl::Status written = write_new(key, std::string(data, static_cast<size_t>(size)), 0600);
    OPENSSL_cleanse(data, static_cast<size_t>(size));
    if (!written.ok()) return written;
  }
  absl::StatusOr<std::string> secret = read_pem(key);
  if (!secret.ok()) return secret.status();
  const Key pair(PEM_read_bio_PrivateKey(reader(*secret).get(), nullptr, nullptr, nullptr));
  const Certificate made = pair ? sign_itself(pair.get()) : nullptr;
  ERR_clear_error();
  if (!made) return failed("create", certificate, "OpenSSL failed");
  return write_new(certificate, to_pem(made.get()), 0644);
}

absl::StatusOr<std::string> presented_certificate(const std::string& host, int port,
                                                  std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  const FileDescriptor fd = connect_tcp(host, port, until);
  if (!fd) return absl::UnavailableError("nothing accepts the connection");
  const TlsContext context(SSL_CTX_new(TLS_client_method()));
  const TlsConnection connection(context ? SSL_new(context.get()) : nullptr);
  if (!connection || SSL_set_fd(connection.get(), fd.get()) != 1) return absl::InternalError("OpenSSL failed");
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(connection.get(), kHttp2, sizeof kHttp2);
  SSL_set_tlsext_host_name(connection.get(), host.c_str());
  for (;;) {
    const int done = SSL_connect(connection.get());
    // With TLS 1.3, a server that requires a client's certificate fails the handshake after it has presented its own.
    const Certificate certificate(SSL_get1_peer_certificate(connection.get()));
    const int why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(connection.get(), done);
    ERR_clear_error();
    if (certificate) return to_pem(certificate.get());
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
      return absl::FailedPreconditionError("the server does not speak TLS");
    }
    if (!wait_ready(fd.get(), why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, until)) {
      return absl::UnavailableError("the server did not answer");
    }
  }
}

}  // namespace tt
