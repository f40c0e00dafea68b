#include "server/session/offload_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderPrefix[] = "engine-";
constexpr char kSuffix[] = ".tensors";

// Names of the folder's entries that satisfy `is_wanted`. The descriptor stays the caller's.
template <typename Wanted>
std::vector<std::string> entries_of(int folder, const Wanted& is_wanted) {
  std::vector<std::string> names;
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = own < 0 ? nullptr : fdopendir(own);
  if (listing == nullptr) {
    if (own >= 0) ::close(own);
    return names;
  }
  while (const dirent* entry = readdir(listing)) {
    if (is_wanted(entry->d_name)) names.emplace_back(entry->d_name);
  }
  closedir(listing);
  return names;
}

// Removes the files of a process's folder.
void remove_files(int folder) {
  const auto is_file = [](const char* name) { return absl::EndsWith(name, kSuffix); };
  for (const std::string& name : entries_of(folder, is_file)) unlinkat(folder, name.c_str(), 0);
}

// Removes the folders of processes that do not hold their locks any more.
void remove_abandoned(int base) {
  const auto is_folder = [](const char* name) { return absl::StartsWith(name, kFolderPrefix); };
  for (const std::string& name : entries_of(base, is_folder)) {
    FileDescriptor folder(openat(base, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    remove_files(folder.get());
    if (unlinkat(base, name.c_str(), AT_REMOVEDIR) == 0) spdlog::info("removed {}, which an engine had left", name);
  }
}

[[noreturn]] void cannot(const char* what, int error) {
  fail(ErrorKind::kRuntime, "[offload] cannot ", what, " a file in --offload-dir: ", std::strerror(error));
}

}  // namespace

absl::StatusOr<std::shared_ptr<OffloadFolder>> OffloadFolder::open(const fs::path& folder, Limits limits) {
  const auto failed = [&](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat("--offload-dir ", folder.native(), ": ", what));
  };
  std::error_code error;
  fs::create_directories(folder, error);
  FileDescriptor base(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!base || fstat(base.get(), &status) != 0) return failed(std::strerror(errno));
  if (status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return failed("expected a folder of this user that no other one can access; use 'chmod 700'");
  }
  // Held until the new folder is locked, so that no other engine takes it for an abandoned one.
  while (flock(base.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return failed(std::strerror(errno));
  }
  remove_abandoned(base.get());
  std::string path = (fs::absolute(folder) / absl::StrCat(kFolderPrefix, "XXXXXX")).native();
  if (mkdtemp(path.data()) == nullptr) return failed(std::strerror(errno));
  FileDescriptor own(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!own || flock(own.get(), LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    rmdir(path.c_str());
    return failed(std::strerror(reason));
  }
  return std::shared_ptr<OffloadFolder>(new OffloadFolder(std::move(path), std::move(own), limits));
}

uint64_t OffloadFolder::room_locked(const std::string& principal) const {
  if (removed_) return 0;
  const auto left = [](uint64_t limit, uint64_t used) {
    if (limit == 0) return UINT64_MAX;
    return used < limit ? limit - used : 0;
  };
  const auto found = by_principal_.find(principal);
  const uint64_t own = found == by_principal_.end() ? 0 : found->second;
  return std::min(left(limits_.total, bytes()), left(limits_.per_principal, own));
}

uint64_t OffloadFolder::room(const std::string& principal) const {
  MutexLock lock(mutex_);
  return room_locked(principal);
}

std::unique_ptr<OffloadFolder::File> OffloadFolder::create(const std::string& principal, uint64_t bytes) {
  std::unique_ptr<File> file;
  {
    MutexLock lock(mutex_);
    check(bytes <= room_locked(principal), "[offload] --offload-dir has room for ", bytes_text(room_locked(principal)),
          " of ", principal.empty() ? "the sessions" : principal, ", expected ", bytes_text(bytes));
    file.reset(new File(shared_from_this(), absl::StrCat(++last_name_, kSuffix), principal, bytes));
    by_principal_[principal] += bytes;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  file->descriptor_.reset(
      openat(descriptor_.get(), file->name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file->descriptor_) cannot("create", errno);
  // Fails before anything is written if the disk has no room.
  while (fallocate(file->descriptor_.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS) break;
    if (errno != EINTR) cannot("write", errno);
  }
  return file;
}

void OffloadFolder::refund(const std::string& principal, uint64_t bytes) {
  MutexLock lock(mutex_);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  const auto found = by_principal_.find(principal);
  found->second -= bytes;
  if (found->second == 0) by_principal_.erase(found);
}

void OffloadFolder::remove() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(removed_, true)) return;
  }
  remove_files(descriptor_.get());
  rmdir(path_.c_str());
}

OffloadFolder::File::~File() {
  close();
  unlinkat(folder_->descriptor_.get(), name_.c_str(), 0);  // absent if creating it failed, or after remove()
  folder_->refund(principal_, charged_);
}

void OffloadFolder::File::append(const void* data, size_t size) {
  check(size <= charged_ - size_, "[offload] expected at most ", charged_ - size_, " more bytes, got ", size);
  for (const char* at = static_cast<const char*>(data); size != 0;) {
    const ssize_t written = pwrite(descriptor_.get(), at, size, static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) cannot("write", written == 0 ? ENOSPC : errno);
    at += written;
    size -= static_cast<size_t>(written);
    size_ += static_cast<uint64_t>(written);
  }
}

void OffloadFolder::File::read(uint64_t offset, void* into, size_t size) {
  if (!descriptor_) {
    descriptor_.reset(openat(folder_->descriptor_.get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!descriptor_) cannot("open", errno);
  }
  for (char* at = static_cast<char*>(into); size != 0;) {
    const ssize_t got = pread(descriptor_.get(), at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot("read", errno);
    check(got != 0, "[offload] a file in --offload-dir is damaged: it ends early");
    at += got;
    size -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
}

}  // namespace tt::server
