#include "proto/revocations.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/free_with.h"

namespace tt {
namespace {

constexpr std::chrono::seconds kCheckInterval{1};
constexpr int kMaxChain = 16;
constexpr size_t kMaxName = 120;
constexpr size_t kMaxChains = 1000;
constexpr size_t kMaxKeptBytes = 16 << 10;  // per certificate, with its chain

using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;

void free_certificates(STACK_OF(X509) * certificates) { sk_X509_pop_free(certificates, X509_free); }
using Chain = std::unique_ptr<STACK_OF(X509), FreeWith<free_certificates>>;

Chain parse_chain(absl::string_view pem) {
  Chain chain(sk_X509_new_null());
  const Bio in(BIO_new_mem_buf(pem.data(), static_cast<int>(std::min<size_t>(pem.size(), INT_MAX))));
  while (chain && sk_X509_num(chain.get()) < kMaxChain) {
    X509* const next = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr);
    if (next == nullptr) break;
    if (sk_X509_push(chain.get(), next) == 0) {  // which owns it otherwise
      X509_free(next);
      break;
    }
  }
  ERR_clear_error();
  return chain;
}

// The certificates of --tls-client-ca are trusted, so that lists of their own authorities are not required.
int accept_authority(int valid, X509_STORE_CTX* context) {
  const int error = X509_STORE_CTX_get_error(context), depth = X509_STORE_CTX_get_error_depth(context);
  const bool has_no_list = error == X509_V_ERR_UNABLE_TO_GET_CRL || error == X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER;
  const bool is_authority = depth > 0 && depth == sk_X509_num(X509_STORE_CTX_get0_chain(context)) - 1;
  if (valid == 1 || !has_no_list || !is_authority) return valid;
  X509_STORE_CTX_set_error(context, X509_V_OK);
  return 1;
}

std::string describe(X509* certificate) {
  const Bio name(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(name.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);  // escapes control characters
  char* shown = nullptr;
  const long size = BIO_get_mem_data(name.get(), &shown);
  const std::unique_ptr<BIGNUM, FreeWith<BN_free>> serial(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* const digits = serial ? BN_bn2hex(serial.get()) : nullptr;
  std::string text = absl::StrCat(absl::string_view(shown, std::min<size_t>(size, kMaxName)),
                                  " with the serial number ", digits ? digits : "?");
  OPENSSL_free(digits);
  return text;
}

}  // namespace

absl::Status require_revocation_lists(X509_STORE* store, const std::string& file) {
  X509_LOOKUP* const lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  // Certificates in the file do not become authorities.
  const bool loaded = lookup && X509_load_crl_file(lookup, file.c_str(), X509_FILETYPE_PEM) > 0 &&
                      X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1;
  ERR_clear_error();
  if (loaded) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot use ", file, ": expected revocation lists (CRLs) in PEM format"));
}

absl::StatusOr<std::unique_ptr<Revocations>> Revocations::load(const TlsFiles& files, Report report) {
  std::unique_ptr<Revocations> made(new Revocations(files, std::move(report)));
  MutexLock lock(made->mutex_);
  made->checked_ = Clock::now();
  made->stamps_ = {stamp_of(files.revocations), stamp_of(files.authorities)};
  absl::StatusOr<Store> store = made->read();
  if (!store.ok()) return store.status();
  made->store_ = *std::move(store);
  return made;
}

absl::StatusOr<Revocations::Store> Revocations::read() const {
  Store store(X509_STORE_new(), X509_STORE_free);
  const bool loaded = store && X509_STORE_load_file(store.get(), files_.authorities.c_str()) == 1;
  ERR_clear_error();
  if (!loaded) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use ", files_.authorities, ": expected certificates in PEM format"));
  }
  if (absl::Status status = require_revocation_lists(store.get(), files_.revocations); !status.ok()) return status;
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);  // as gRPC: an authority need not have signed itself
  X509_STORE_set_verify_cb(store.get(), &accept_authority);
  return store;
}

std::string Revocations::chain_of(absl::string_view certificate, absl::string_view chain) {
  if (!chain.empty()) return std::string(chain);
  MutexLock lock(mutex_);
  auto found = chains_.find(certificate);
  return found == chains_.end() ? "" : found->second;
}

void Revocations::keep_chain(absl::string_view certificate, absl::string_view chain) {
  if (chain.empty() || certificate.size() + chain.size() > kMaxKeptBytes) return;
  MutexLock lock(mutex_);
  if (chains_.size() >= kMaxChains && !chains_.contains(certificate)) chains_.erase(chains_.begin());
  chains_[certificate] = std::string(chain);
}

Revocations::Store Revocations::current() {
  Store store;
  absl::Status failure;
  {
    MutexLock lock(mutex_);
    if (Clock::now() - checked_ >= kCheckInterval) {
      checked_ = Clock::now();
      const std::array<FileStamp, 2> stamps{stamp_of(files_.revocations), stamp_of(files_.authorities)};
      if (stamps != stamps_) {
        stamps_ = stamps;
        absl::StatusOr<Store> fresh = read();
        failure = fresh.status();
        if (fresh.ok()) store_ = *std::move(fresh);
      }
    }
    store = store_;
  }
  if (!failure.ok() && report_) report_(failure);
  return store;
}

absl::Status Revocations::check(absl::string_view certificate, absl::string_view chain) {
  const Store store = current();
  const Chain first = parse_chain(certificate), rest = parse_chain(chain_of(certificate, chain));
  X509* const checked = first ? sk_X509_value(first.get(), 0) : nullptr;
  const std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  absl::Status status;
  if (checked == nullptr) {
    status = absl::UnauthenticatedError("expected a certificate of the client");
  } else if (!context || X509_STORE_CTX_init(context.get(), store.get(), checked, rest.get()) != 1) {
    status = absl::UnauthenticatedError("a certificate of a client could not be checked");
  } else if (X509_verify_cert(context.get()) != 1) {
    status = absl::UnauthenticatedError(
        absl::StrCat("refused the certificate of the client ", describe(checked), ": ",
                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))));
  }
  ERR_clear_error();
  if (status.ok()) keep_chain(certificate, chain);
  if (!status.ok() && report_) report_(status);
  return status;
}

}  // namespace tt
