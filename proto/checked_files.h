// CheckedTlsFiles: copies of TLS files in memory, which are replaced only by files that can be used together.
//
// gRPC reads changed files every few seconds and does not check that a certificate and its key belong together: between
// the replacement of the one and of the other it would refuse every connection. It is given the copies instead: a file
// without a name for the certificate and its key together, and one for the authorities. A thread compares the originals
// with the last ones once per second, and replaces the copies when the files have not changed for a second and pass the
// checks of certificate.h; otherwise it reports the reason, once per change, and the previous copies stay in use.
// Thread-safe.
#pragma once

#include <array>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "proto/certificate.h"

namespace tt {

class CheckedTlsFiles {
 public:
  // Receives the error of changed files, or OK when changed files are in use. Called by the thread.
  using Report = std::function<void(const absl::Status&)>;

  // Checks and copies `files`, which have a certificate, and watches them until the process ends, because gRPC's
  // threads may outlive main(). FAILED_PRECONDITION, naming the file, if they cannot be used.
  static absl::StatusOr<TlsFiles> watch(const TlsFiles& files, Report report);

 private:
  using Stamps = std::array<FileStamp, 3>;

  CheckedTlsFiles(TlsFiles files, Report report) : files_(std::move(files)), report_(std::move(report)) {}
  Stamps stamps() const;
  absl::Status copy();
  void run();

  const TlsFiles files_;
  const Report report_;
  Stamps used_{}, seen_{};  // of the last files that were checked; when they were looked at last
  FileDescriptor identity_, authorities_;
};

}  // namespace tt
