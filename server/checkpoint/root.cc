#include "server/checkpoint/root.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"
#include "server/checkpoint/file_error.h"
#include "server/checkpoint/replacement_file.h"

namespace tt::server {
namespace {

constexpr size_t kMaxPath = 4096;
// A limit of bytes also limits files and folders: to this number and, as ext4 does, to one per kBytesPerEntry.
constexpr uint64_t kMinEntries = 1000, kBytesPerEntry = 16 << 10;

absl::string_view text(std::string_view s) { return {s.data(), s.size()}; }

// Makes the entries of a folder durable.
void sync_folder(int folder, std::string_view path) {
  const FileDescriptor readable(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable || fsync(readable.get()) != 0) fail_with(errno, "write", path);
}

bool is_symbolic_link(int folder, const std::string& name) {
  struct stat status {};
  return fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

void refuse_link(std::string_view path) {
  fail(ErrorKind::kValue, "'", path,
       "' leads through a symbolic link; these are not followed below the checkpoint root");
}

CheckpointRoot::Entry::Type type_of(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return CheckpointRoot::Entry::Type::kFile;
  return S_ISDIR(status.st_mode) ? CheckpointRoot::Entry::Type::kFolder : CheckpointRoot::Entry::Type::kOther;
}

// The entries of an open folder, in any order.
std::vector<CheckpointRoot::Entry> entries(FileDescriptor folder, std::string_view path) {
  DIR* stream = fdopendir(folder.get());
  if (stream == nullptr) fail_with(errno, "list", path);
  folder.release();
  const absl::Cleanup close = [stream] { closedir(stream); };
  std::vector<CheckpointRoot::Entry> found;
  constexpr size_t kMaxEntries = 1'000'000;
  for (errno = 0; const dirent* entry = readdir(stream); errno = 0) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    check(found.size() < kMaxEntries, "'", path, "' has more than ", kMaxEntries, " entries");
    struct stat status {};
    if (fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // removed meanwhile
    found.push_back({name, type_of(status), static_cast<uint64_t>(status.st_size)});
  }
  if (errno != 0) fail_with(errno, "list", path);
  return found;
}

FileDescriptor open_for_listing(int parent, const std::string& name) {
  return FileDescriptor(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Removes the file or folder `name`, which may be missing; returns the number of files and folders. `path` is for
// messages.
int64_t remove_at(int parent, const std::string& name, std::string_view path, bool check_only = false) {
  struct stat status {};
  if (fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return 0;
    fail_with(errno, "remove", path);
  }
  if (!S_ISDIR(status.st_mode)) {
    if (!check_only && unlinkat(parent, name.c_str(), 0) != 0 && errno != ENOENT) fail_with(errno, "remove", path);
    return 1;
  }
  FileDescriptor folder = open_for_listing(parent, name);
  if (!folder) fail_with(errno, "open", path);
  const FileDescriptor same(dup(folder.get()));
  const std::vector<CheckpointRoot::Entry> inside = entries(std::move(folder), path);
  for (const CheckpointRoot::Entry& entry : inside) {
    check(ErrorKind::kValue, entry.type == CheckpointRoot::Entry::Type::kFile && is_checkpoint_file(entry.name),
          "will not remove the folder '", path, "': expected only files of a checkpoint in it, got '", entry.name, "'");
  }
  if (check_only) return 1;
  for (const CheckpointRoot::Entry& entry : inside) {
    if (unlinkat(same.get(), entry.name.c_str(), 0) != 0 && errno != ENOENT) fail_with(errno, "remove", path);
  }
  if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) fail_with(errno, "remove", path);
  return static_cast<int64_t>(inside.size()) + 1;
}

// The files and folders in a folder and in those below it, and the files' bytes, without files that are being written.
struct Contents {
  uint64_t entries = 0, bytes = 0;
};
Contents contents_of(FileDescriptor folder, std::string_view path, size_t depth = 0) {
  constexpr size_t kMaxDepth = 64;
  check(depth < kMaxDepth, "'", path, "' has more than ", kMaxDepth, " levels of folders");
  const FileDescriptor same(fcntl(folder.get(), F_DUPFD_CLOEXEC, 0));
  if (!same) fail_with(errno, "list", path);
  Contents all;
  for (const CheckpointRoot::Entry& entry : entries(std::move(folder), path)) {
    if (is_temporary_name(entry.name)) continue;
    ++all.entries;
    if (entry.type == CheckpointRoot::Entry::Type::kFile) all.bytes += entry.bytes;
    if (entry.type != CheckpointRoot::Entry::Type::kFolder) continue;
    FileDescriptor below = open_for_listing(same.get(), entry.name);
    if (!below && errno == ENOENT) continue;  // removed meanwhile
    if (!below) fail_with(errno, "list", path);
    const Contents inside = contents_of(std::move(below), path, depth + 1);
    all.entries += inside.entries;
    all.bytes += inside.bytes;
  }
  return all;
}

// Exchanges two folders; where the file system cannot do that atomically, `target` is missing for a moment.
void exchange(const CheckpointRoot::Place& source, const CheckpointRoot::Place& target) {
  if (renameat2(source.folder.get(), source.name.c_str(), target.folder.get(), target.name.c_str(), RENAME_EXCHANGE) ==
      0) {
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) fail_with(errno, "rename", source.path);
  const std::string aside = new_temporary_name();
  const int old = target.folder.get(), moved = source.folder.get();
  if (renameat(old, target.name.c_str(), old, aside.c_str()) != 0) fail_with(errno, "rename", target.path);
  if (renameat(moved, source.name.c_str(), old, target.name.c_str()) != 0) {
    const int error = errno;
    static_cast<void>(renameat(old, aside.c_str(), old, target.name.c_str()));
    fail_with(error, "rename", source.path);
  }
  if (renameat(old, aside.c_str(), moved, source.name.c_str()) != 0) fail_with(errno, "rename", target.path);
}

}  // namespace

bool is_checkpoint_file(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".json") || is_temporary_name(name);
}

CheckpointRoot::CheckpointRoot(std::string path, std::string principal, std::shared_ptr<Quota> quota)
    : quota_(std::move(quota)), path_(std::string(absl::StripSuffix(path, "/"))), principal_(std::move(principal)) {}

std::shared_ptr<const CheckpointRoot> CheckpointRoot::unrestricted() {
  return std::shared_ptr<const CheckpointRoot>(new CheckpointRoot);
}

// Returns the components of a path below the root.
std::vector<std::string> CheckpointRoot::components(std::string_view path) const {
  check(ErrorKind::kValue, !path.empty() && path.size() <= kMaxPath && path.find('\0') == std::string_view::npos,
        "expected a path of 1 to ", kMaxPath, " bytes without zero bytes, got ", path.size(), " bytes");
  std::string_view below = path;
  if (!unrestricted_ && path.front() == '/') {
    const std::string root = principal_.empty() ? path_ : absl::StrCat(path_, "/", principal_);
    const bool inside = path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
    check(ErrorKind::kValue, inside, "expected a path below the checkpoint root, got '", path, "'");
    below.remove_prefix(root.size());
  }
  std::vector<std::string> parts = absl::StrSplit(text(below), '/', absl::SkipEmpty());
  parts.erase(std::remove(parts.begin(), parts.end(), "."), parts.end());
  for (const std::string& part : parts) {
    check(ErrorKind::kValue, part != "..", "expected a path without '..', got '", path, "'");
    check(ErrorKind::kValue, !is_temporary_name(part), "'", part, "' is reserved for files that are being written");
  }
  return parts;
}

FileDescriptor CheckpointRoot::open_start(std::string_view path) const {
  const char* start = !unrestricted_ ? path_.empty() ? "/" : path_.c_str() : path.front() == '/' ? "/" : ".";
  FileDescriptor root(open(start, O_PATH | O_DIRECTORY | O_CLOEXEC));
  check(static_cast<bool>(root), "cannot open the checkpoint root: ", std::strerror(errno));
  return principal_.empty() ? std::move(root) : open_folder(root.get(), principal_, true, path);
}

FileDescriptor CheckpointRoot::open_folder(int parent, const std::string& name, bool create, std::string_view path,
                                           bool* missing) const {
  const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (unrestricted_ ? 0 : O_NOFOLLOW);
  FileDescriptor folder(openat(parent, name.c_str(), flags));
  if (!folder && errno == ENOENT && create) {
    if (mkdirat(parent, name.c_str(), 0777) == 0) {
      sync_folder(parent, path);
    } else if (errno != EEXIST) {
      fail_with(errno, "create a folder of", path);
    }
    folder.reset(openat(parent, name.c_str(), flags));
  }
  if (folder) return folder;
  const int error = errno;
  if (error == ENOENT && missing != nullptr) {
    *missing = true;
    return folder;
  }
  if (!unrestricted_ && is_symbolic_link(parent, name)) refuse_link(path);
  fail_with(error, "open", path);
}

CheckpointRoot::Place CheckpointRoot::find(std::string_view path, bool create, bool* missing) const {
  std::vector<std::string> parts = components(path);
  check(ErrorKind::kValue, !parts.empty(), "expected the path of a file or folder below the root, got '", path, "'");
  if (create && quota_ && parts.size() > 1) {
    bool creates = false;
    find(path, false, &creates);
    if (creates) static_cast<void>(reserve(path, 0));
  }
  FileDescriptor folder = open_start(path);
  for (size_t i = 0; i + 1 < parts.size() && folder; ++i) {
    folder = open_folder(folder.get(), parts[i], create, path, missing);
  }
  return {std::move(folder), std::move(parts.back()), std::string(path)};
}

CheckpointRoot::Room CheckpointRoot::reserve(std::string_view path, uint64_t bytes) const {
  const uint64_t limit = quota_ ? quota_->limits().checkpoint_bytes : 0;
  if (limit == 0) return {};
  // Reserved before the files are counted: a file of another writer is counted at least once.
  const uint64_t writing = quota_->reserve_checkpoint(bytes);
  Room room(quota_, bytes);
  uint64_t replaced = 0;
  bool missing = false;
  if (const Place place = find(path, false, &missing); !missing) {
    struct stat status {};
    const bool exists = fstatat(place.folder.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && S_ISREG(status.st_mode)) replaced = static_cast<uint64_t>(status.st_size);
  }
  const FileDescriptor start = open_start(path);
  FileDescriptor folder = open_for_listing(start.get(), ".");
  if (!folder) fail_with(errno, "list", path);
  const Contents used = contents_of(std::move(folder), path);
  const uint64_t max_entries = kMinEntries + limit / kBytesPerEntry;
  check(used.entries < max_entries, "cannot write '", path, "': ", quota_->principal(), " has ", used.entries,
        " files and folders, of at most ", max_entries, " for a limit of ", bytes_text(limit));
  const uint64_t kept = used.bytes - std::min(used.bytes, replaced);
  check(kept + writing <= limit, "cannot write '", path, "' of ", bytes_text(bytes), ": the checkpoints of ",
        quota_->principal(), " take ", bytes_text(kept + writing - bytes), " of their limit of ", bytes_text(limit));
  return room;
}

FileDescriptor CheckpointRoot::open_file(std::string_view path) const {
  const Place place = find(path, false);
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (unrestricted_ ? 0 : O_NOFOLLOW);
  FileDescriptor file(openat(place.folder.get(), place.name.c_str(), flags));
  if (!file) {
    const int error = errno;
    if (!unrestricted_ && is_symbolic_link(place.folder.get(), place.name)) refuse_link(path);
    fail_with(error, "open", path);
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail_with(errno, "open", path);
  if (S_ISDIR(status.st_mode)) fail_with(EISDIR, "open", path);
  check(ErrorKind::kValue, S_ISREG(status.st_mode), "expected a file, but '", path, "' is neither a file nor a folder");
  return file;
}

std::vector<CheckpointRoot::Entry> CheckpointRoot::list(std::string_view path) const {
  FileDescriptor folder = open_start(path);
  for (const std::string& part : components(path)) folder = open_folder(folder.get(), part, false, path);
  FileDescriptor readable(openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable) fail_with(errno, "list", path);
  std::vector<Entry> found = entries(std::move(readable), path);
  found.erase(std::remove_if(found.begin(), found.end(), [](const Entry& e) { return is_temporary_name(e.name); }),
              found.end());
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return found;
}

void CheckpointRoot::rename(std::string_view source_path, std::string_view target_path) const {
  const Place source = find(source_path, false);
  const Place target = find(target_path, true);
  struct stat from {
  }, to{};
  if (fstatat(source.folder.get(), source.name.c_str(), &from, AT_SYMLINK_NOFOLLOW) != 0) {
    fail_with(errno, "rename", source_path);
  }
  check(ErrorKind::kValue, S_ISREG(from.st_mode) || S_ISDIR(from.st_mode), "expected a file or a folder, but '",
        source_path, "' is neither");
  const bool exists = fstatat(target.folder.get(), target.name.c_str(), &to, AT_SYMLINK_NOFOLLOW) == 0;
  check(ErrorKind::kValue, !exists || from.st_dev != to.st_dev || from.st_ino != to.st_ino,
        "expected two different paths, got '", source_path, "' and '", target_path, "'");
  if (S_ISDIR(from.st_mode)) {
    const FileDescriptor folder = open_for_listing(source.folder.get(), source.name);
    if (!folder || fsync(folder.get()) != 0) fail_with(errno, "write", source_path);
  }
  if (exists && S_ISDIR(to.st_mode)) {
    check(ErrorKind::kValue, S_ISDIR(from.st_mode), "expected a folder to replace the folder '", target_path, "'");
    remove_at(target.folder.get(), target.name, target_path, true);
    exchange(source, target);
    sync_folder(target.folder.get(), target_path);
    remove_at(source.folder.get(), source.name, source_path);
  } else if (renameat(source.folder.get(), source.name.c_str(), target.folder.get(), target.name.c_str()) != 0) {
    fail_with(errno, "rename", source_path);
  }
  sync_folder(target.folder.get(), target_path);
  sync_folder(source.folder.get(), source_path);
}

int64_t CheckpointRoot::remove(std::string_view path) const {
  bool missing = false;
  const Place place = find(path, false, &missing);
  if (missing) return 0;
  const int64_t removed = remove_at(place.folder.get(), place.name, path);
  if (removed != 0) sync_folder(place.folder.get(), path);
  return removed;
}

}  // namespace tt::server
