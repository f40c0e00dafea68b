// Revocations: which certificates of clients were revoked, from a file of their authorities' revocation lists (CRLs).
//
// As in other servers, a certificate is accepted if there is a list of each authority that leads to it, the list is
// signed by that authority and its date of the next update has not passed, and it does not name the certificate.
// The files are checked for a change at most once per second, when a certificate is checked; while a new file cannot be
// used, which is reported, the previous lists stay in use. A certificate of --tls-client-ca is trusted whether or not
// there is a list of its own authority. Thread-safe.
#pragma once

#include <openssl/x509_vfy.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "proto/certificate.h"

namespace tt {

// Makes `store` check certificates by the lists of `file`. FAILED_PRECONDITION, naming the file, if it has none.
absl::Status require_revocation_lists(X509_STORE* store, const std::string& file);

class Revocations {
 public:
  // Receives UNAUTHENTICATED for each refused certificate, and the error of a file that was changed and cannot be used.
  // Called by the thread that calls check(), without a lock.
  using Report = std::function<void(const absl::Status&)>;

  // Reads files.revocations and files.authorities. The message of an error is one line that names the file.
  static absl::StatusOr<std::unique_ptr<Revocations>> load(const TlsFiles& files, Report report);

  // OK if `certificate` (PEM) is accepted, by way of the certificates in `chain` (PEM, in any order), else
  // UNAUTHENTICATED. A client that resumes a TLS session sends no chain: that of its last handshake is used, which is
  // kept for a thousand accepted certificates; beyond that, any is forgotten.
  absl::Status check(absl::string_view certificate, absl::string_view chain);

 private:
  using Clock = std::chrono::steady_clock;
  using Store = std::shared_ptr<X509_STORE>;

  Revocations(TlsFiles files, Report report) : files_(std::move(files)), report_(std::move(report)) {}
  absl::StatusOr<Store> read() const;
  Store current();
  // Returns `chain`, or if that is empty, the one kept for the certificate.
  std::string chain_of(absl::string_view certificate, absl::string_view chain);
  void keep_chain(absl::string_view certificate, absl::string_view chain);

  const TlsFiles files_;
  const Report report_;
  Mutex mutex_;
  Store store_ ABSL_GUARDED_BY(mutex_);
  std::array<FileStamp, 2> stamps_ ABSL_GUARDED_BY(mutex_){};  // of the lists and the authorities when they were read
  Clock::time_point checked_ ABSL_GUARDED_BY(mutex_){};
  absl::flat_hash_map<std::string, std::string> chains_ ABSL_GUARDED_BY(mutex_);  // by certificate
};

}  // namespace tt
