#include "proto/checked_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tt {
namespace {

constexpr std::chrono::seconds kCheckInterval{1};

// gRPC reads a file again if its time of change differs after the reading.
absl::Status write_file(int fd, const std::string& text) {
  const auto size = static_cast<ssize_t>(text.size());
  if (pwrite(fd, text.data(), text.size(), 0) == size && ftruncate(fd, size) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot copy a certificate into memory");
}

}  // namespace

absl::StatusOr<TlsFiles> CheckedTlsFiles::watch(const TlsFiles& files, Report report) {
  std::unique_ptr<CheckedTlsFiles> made(new CheckedTlsFiles(files, std::move(report)));
  made->identity_.reset(memfd_create("teletensor-certificate", MFD_CLOEXEC));
  made->authorities_.reset(memfd_create("teletensor-authorities", MFD_CLOEXEC));
  if (!made->identity_ || !made->authorities_) return absl::ErrnoToStatus(errno, "cannot create a file in memory");
  made->used_ = made->seen_ = made->stamps();
  if (absl::Status status = made->copy(); !status.ok()) return status;
  TlsFiles copies;
  copies.certificate = copies.key = absl::StrCat("/proc/self/fd/", made->identity_.get());
  if (!files.authorities.empty()) copies.authorities = absl::StrCat("/proc/self/fd/", made->authorities_.get());
  std::thread([watching = made.release()] { watching->run(); }).detach();
  return copies;
}

CheckedTlsFiles::Stamps CheckedTlsFiles::stamps() const {
  return {stamp_of(files_.certificate), stamp_of(files_.key), stamp_of(files_.authorities)};
}

absl::Status CheckedTlsFiles::copy() {
  if (absl::Status status = check_certificate(files_.certificate, files_.key); !status.ok()) return status;
  absl::StatusOr<std::string> certificate = read_pem(files_.certificate), key = read_pem(files_.key);
  if (!certificate.ok()) return certificate.status();
  if (!key.ok()) return key.status();
  if (!files_.authorities.empty()) {
    if (absl::Status status = check_authorities(files_.authorities); !status.ok()) return status;
    absl::StatusOr<std::string> authorities = read_pem(files_.authorities);
    if (!authorities.ok()) return authorities.status();
    if (absl::Status status = write_file(authorities_.get(), *authorities); !status.ok()) return status;
  }
  return write_file(identity_.get(), absl::StrCat(*certificate, "\n", *key));
}

void CheckedTlsFiles::run() {
  for (;;) {
    std::this_thread::sleep_for(kCheckInterval);
    const Stamps current = stamps();
    const bool is_stable = std::exchange(seen_, current) == current;
    if (!is_stable || current == used_) continue;
    used_ = current;
    const absl::Status status = copy();
    if (report_) report_(status);
  }
}

}  // namespace tt
