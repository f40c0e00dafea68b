#include "server/http/tls.h"

#include <openssl/err.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/revocations.h"
#include "server/log.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr std::chrono::seconds kCheckInterval{1};

// Makes a context ask clients for certificates of the authorities in `file`.
bool request_certificates(SSL_CTX* context, const std::string& file) {
  if (SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) != 1) return false;
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr) return false;
  SSL_CTX_set_client_CA_list(context, names);  // takes the list
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  // A resumed connection would not verify the certificate again.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  return SSL_CTX_set_num_tickets(context, 0) == 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpTls>> HttpTls::load(const TlsFiles& files) {
  std::unique_ptr<HttpTls> tls(new HttpTls(files));
  if (absl::Status status = tls->read(); !status.ok()) return status;
  return tls;
}

bool HttpTls::has_certificate(const SSL* ssl) { return SSL_get0_peer_certificate(ssl) != nullptr; }

HttpTls::Stamps HttpTls::stamps() const {
  return {stamp_of(files_.certificate), stamp_of(files_.key), stamp_of(files_.authorities),
          stamp_of(files_.revocations)};
}

absl::Status HttpTls::read() {
  checked_ = Clock::now();
  stamps_ = stamps();
  if (absl::Status status = check_certificate(files_.certificate, files_.key); !status.ok()) return status;
  if (requires_certificate()) {
    if (absl::Status status = check_authorities(files_.authorities); !status.ok()) return status;
  }
  std::unique_ptr<SSL_CTX, SslDeleter> context(SSL_CTX_new(TLS_server_method()));
  if (context && !files_.revocations.empty()) {
    X509_STORE* const store = SSL_CTX_get_cert_store(context.get());
    if (absl::Status status = require_revocation_lists(store, files_.revocations); !status.ok()) return status;
  }
  const bool usable = context && SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1 &&
                      SSL_CTX_use_certificate_chain_file(context.get(), files_.certificate.c_str()) == 1 &&
                      SSL_CTX_use_PrivateKey_file(context.get(), files_.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                      SSL_CTX_check_private_key(context.get()) == 1 &&
                      (!requires_certificate() || request_certificates(context.get(), files_.authorities));
  ERR_clear_error();
  if (!usable) return absl::FailedPreconditionError(absl::StrCat(files_.certificate, ": cannot be used for HTTP"));
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  context_ = std::move(context);  // existing connections keep the previous one
  return absl::OkStatus();
}

void HttpTls::read_if_changed() {
  if (Clock::now() - checked_ < kCheckInterval) return;
  checked_ = Clock::now();
  if (stamps_ == stamps()) return;
  if (const absl::Status status = read(); !status.ok()) {
    static LogLimit limit;
    limit.warn(absl::StrCat("HTTP keeps its previous certificate: ", status.message()));
  } else {
    spdlog::info("HTTP uses the new certificate of {}", files_.certificate);
  }
}

SslPointer HttpTls::accept(int socket) {
  read_if_changed();
  SslPointer ssl(SSL_new(context_.get()));
  if (ssl && SSL_set_fd(ssl.get(), socket) != 1) ssl = nullptr;
  if (ssl) SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace tt::server
