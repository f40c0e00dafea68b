#include "server/serving/shared_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr size_t kMaxName = 255;

}  // namespace

absl::Status SharedRegions::Region::check(uint64_t offset, uint64_t size) const {
  if (offset <= bytes_ && size <= bytes_ - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected bytes of the shared memory region '", key_, "', which has ",
                                                 bytes_, ", got ", size, " at offset ", offset));
}

absl::Status SharedRegions::Region::read(uint64_t offset, uint64_t size, std::string* into) const {
  if (absl::Status status = check(offset, size); !status.ok()) return status;
  into->resize(size);
  for (uint64_t done = 0; done < size;) {
    const ssize_t count =
        pread(file_.get(), into->data() + done, size - done, static_cast<off_t>(offset_ + offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::InvalidArgumentError("the shared memory object has become smaller");
    done += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

absl::Status SharedRegions::Region::write(uint64_t offset, absl::string_view bytes) const {
  if (absl::Status status = check(offset, bytes.size()); !status.ok()) return status;
  struct stat status {};
  if (fstat(file_.get(), &status) != 0 || offset_ + offset + bytes.size() > static_cast<uint64_t>(status.st_size)) {
    return absl::InvalidArgumentError("the shared memory object has become smaller");
  }
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset_ + offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::InvalidArgumentError("the shared memory object cannot be written");
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status SharedRegions::add(const std::string& principal, const std::string& name, const std::string& key,
                                uint64_t offset, uint64_t bytes) {
  if (name.empty() || name.size() > kMaxName || key.empty() || key.size() > kMaxName) {
    return absl::InvalidArgumentError(absl::StrCat("expected a name and a key of 1 to ", kMaxName, " bytes"));
  }
  const std::string path = key[0] == '/' ? key : absl::StrCat("/", key);
  if (path.find('/', 1) != std::string::npos || path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("expected the key of a shared memory object, without further '/'");
  }
  FileDescriptor file(shm_open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0));
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open the shared memory object '", key, "': ", std::strerror(errno)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError("expected a shared memory object");
  }
  // The system lets root open every object; clients must not read another user's by it.
  const bool is_open = (status.st_mode & S_IROTH) != 0 && (status.st_mode & S_IWOTH) != 0;
  if (status.st_uid != geteuid() && !is_open) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a shared memory object that the engine's user owns, or that all users may read and write: '", key,
        "'"));
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (bytes == 0 || offset > size || bytes > size - offset) {
    return absl::InvalidArgumentError(absl::StrCat("expected bytes of the shared memory object '", key, "', which has ",
                                                   size, ", got ", bytes, " at offset ", offset));
  }
  MutexLock lock(mutex_);
  const auto is_own = [&](const auto& each) { return each.first.first == principal; };
  if (regions_.size() >= kMaxRegions ||
      static_cast<size_t>(std::count_if(regions_.begin(), regions_.end(), is_own)) >= kMaxRegionsOfPrincipal) {
    return absl::ResourceExhaustedError(
        absl::StrCat("expected at most ", kMaxRegionsOfPrincipal, " regions of shared memory, unregister some"));
  }
  const bool is_new =
      regions_.try_emplace({principal, name}, std::make_shared<const Region>(key, std::move(file), offset, bytes))
          .second;
  return is_new ? absl::OkStatus()
                : absl::AlreadyExistsError(absl::StrCat("shared memory region '", name, "' is registered already"));
}

absl::StatusOr<SharedRegions::RegionPointer> SharedRegions::find(const std::string& principal,
                                                                 const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = regions_.find({principal, name});
  if (found != regions_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("expected a registered shared memory region, got '", name.substr(0, kMaxName), "'"));
}

std::vector<std::pair<std::string, SharedRegions::RegionPointer>> SharedRegions::list(
    const std::string& principal) const {
  MutexLock lock(mutex_);
  std::vector<std::pair<std::string, RegionPointer>> list;
  for (const auto& [key, region] : regions_) {
    if (key.first == principal) list.emplace_back(key.second, region);
  }
  return list;
}

void SharedRegions::remove(const std::string& principal, const std::string& name) {
  MutexLock lock(mutex_);
  if (!name.empty()) {
    regions_.erase({principal, name});
    return;
  }
  for (auto each = regions_.begin(); each != regions_.end();) {
    each = each->first.first == principal ? regions_.erase(each) : std::next(each);
  }
}

}  // namespace tt::server
