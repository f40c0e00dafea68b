#include "server/daemon/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr char kPrefix[] = "teletensor-private-";
constexpr char kSocket[] = "engine.sock";
// An engine locks its folder right after creating it, so an unlocked folder of this age has no owner.
constexpr time_t kStaleSeconds = 60;

// A socket path has at most 107 characters, so a possibly deep TMPDIR is not used.
std::string base_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime && access(runtime, W_OK | X_OK) == 0 ? runtime : "/tmp";
}

// Removes the folder if it is this user's, stale and not locked. A folder that contains files other than the socket is
// kept.
void remove_if_stale(int base, const char* name) {
  FileDescriptor folder(openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!folder || fstat(folder.get(), &info) != 0 || info.st_uid != getuid()) return;
  if (time(nullptr) - info.st_mtime < kStaleSeconds || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return;
  unlinkat(folder.get(), kSocket, 0);
  unlinkat(base, name, AT_REMOVEDIR);
}

void remove_stale_folders(const std::string& base) {
  DIR* listing = opendir(base.c_str());
  if (!listing) return;
  while (const dirent* entry = readdir(listing)) {
    if (absl::StartsWith(entry->d_name, kPrefix)) remove_if_stale(dirfd(listing), entry->d_name);
  }
  closedir(listing);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateFolder>> PrivateFolder::make() {
  const std::string base = base_folder();
  remove_stale_folders(base);
  std::string path = absl::StrCat(base, "/", kPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot create a folder in ", base, ": ", std::strerror(errno)));
  }
  FileDescriptor lock(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock) flock(lock.get(), LOCK_EX | LOCK_NB);  // on a file system without locks, stale folders remain
  return std::unique_ptr<PrivateFolder>(new PrivateFolder(std::move(path), std::move(lock)));
}

void PrivateFolder::remove() {
  if (path_.empty()) return;
  unlink(absl::StrCat(path_, "/", kSocket).c_str());
  rmdir(path_.c_str());
  path_.clear();
}

}  // namespace tt::server
