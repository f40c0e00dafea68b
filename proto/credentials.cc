#include "proto/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/certificate.h"
#include "proto/checked_files.h"

namespace tt {
namespace {

using grpc::experimental::CertificateVerifier;
using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::FileWatcherCertificateProvider;
using grpc::experimental::TlsCustomVerificationCheckRequest;

constexpr unsigned kReloadSeconds = 1;
// Where Debian, Fedora and SUSE store the system's authorities.
constexpr const char* kSystemAuthorities[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                              "/etc/ssl/ca-bundle.pem"};

absl::Status check_files(const TlsFiles& files) {
  absl::Status status;
  if (!files.certificate.empty()) status = check_certificate(files.certificate, files.key);
  if (status.ok() && !files.authorities.empty()) status = check_authorities(files.authorities);
  return status;
}

std::string system_authorities() {
  if (const char* named = std::getenv("SSL_CERT_FILE"); named && *named) return named;
  for (const char* file : kSystemAuthorities) {
    if (access(file, R_OK) == 0) return file;
  }
  return "";
}

void provide(const TlsFiles& files, grpc::experimental::TlsCredentialsOptions* options) {
  options->set_certificate_provider(std::make_shared<FileWatcherCertificateProvider>(
      files.key, files.certificate, files.authorities, kReloadSeconds));
  if (!files.certificate.empty()) options->watch_identity_key_cert_pairs();
  if (!files.authorities.empty()) options->watch_root_certs();
}

// Accepts the server's certificate by its fingerprint.
class PinnedCertificate final : public ExternalCertificateVerifier {
 public:
  explicit PinnedCertificate(std::string fingerprint) : fingerprint_(std::move(fingerprint)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* result) override {
    const grpc::string_ref given = request->peer_cert();
    const absl::string_view pem(given.data(), given.size());
    const absl::StatusOr<std::string> presented = fingerprint_of(pem);
    absl::Status status = presented.status();
    if (status.ok()) status = check_validity(pem);
    if (status.ok() && *presented != fingerprint_) {
      status = absl::UnauthenticatedError(
          absl::StrCat("expected a certificate with fingerprint ", fingerprint_, ", got ", *presented));
    }
    if (!status.ok()) *result = {grpc::StatusCode::UNAUTHENTICATED, std::string(status.message())};
    return true;  // synchronous
  }
  void Cancel(TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const std::string fingerprint_;
};

// Refuses revoked certificates of clients.
class UnrevokedCertificate final : public ExternalCertificateVerifier {
 public:
  explicit UnrevokedCertificate(std::unique_ptr<Revocations> revocations) : revocations_(std::move(revocations)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* result) override {
    const grpc::string_ref certificate = request->peer_cert(), chain = request->peer_cert_full_chain();
    const absl::Status status =
        revocations_->check({certificate.data(), certificate.size()}, {chain.data(), chain.size()});
    if (!status.ok()) *result = {grpc::StatusCode::UNAUTHENTICATED, std::string(status.message())};
    return true;  // synchronous
  }
  void Cancel(TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const std::unique_ptr<Revocations> revocations_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> plain_server_credentials() { return grpc::InsecureServerCredentials(); }

std::shared_ptr<grpc::ChannelCredentials> plain_channel_credentials() { return grpc::InsecureChannelCredentials(); }

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const TlsFiles& files,
                                                                            Revocations::Report report) {
  std::shared_ptr<CertificateVerifier> verifier;
  if (!files.revocations.empty()) {
    absl::StatusOr<std::unique_ptr<Revocations>> revocations = Revocations::load(files, report);
    if (!revocations.ok()) return revocations.status();
    verifier = ExternalCertificateVerifier::Create<UnrevokedCertificate>(*std::move(revocations));
  }
  const absl::StatusOr<TlsFiles> copies = CheckedTlsFiles::watch(files, std::move(report));
  if (!copies.ok()) return copies.status();
  // gRPC's options are freed with the credentials, so nothing returns between them.
  grpc::experimental::TlsServerCredentialsOptions options(std::make_shared<FileWatcherCertificateProvider>(
      copies->key, copies->certificate, copies->authorities, kReloadSeconds));
  options.watch_identity_key_cert_pairs();
  if (!files.authorities.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  if (verifier) options.set_certificate_verifier(std::move(verifier));
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const TlsFiles& files) {
  TlsFiles used = files;
  if (used.authorities.empty()) used.authorities = system_authorities();
  if (used.authorities.empty()) {
    return absl::FailedPreconditionError("this machine has no file of trusted authorities; set SSL_CERT_FILE");
  }
  if (absl::Status status = check_files(used); !status.ok()) return status;
  grpc::experimental::TlsChannelCredentialsOptions options;
  provide(used, &options);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::HostNameCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> peer_channel_credentials(const TlsFiles& files) {
  const absl::StatusOr<TlsFiles> copies = CheckedTlsFiles::watch(files, {});
  if (!copies.ok()) return copies.status();
  grpc::experimental::TlsChannelCredentialsOptions options;
  provide(*copies, &options);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  options.set_check_call_host(false);
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> pinned_credentials(const std::string& fingerprint,
                                                                             const TlsFiles& files) {
  TlsFiles own = files;
  own.authorities.clear();
  if (absl::Status status = check_files(own); !status.ok()) return status;
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!own.certificate.empty()) provide(own, &options);
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(ExternalCertificateVerifier::Create<PinnedCertificate>(fingerprint));
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace tt
