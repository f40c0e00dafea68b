#include "server/session/session_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "server/checkpoint/replacement_file.h"
#include "server/checkpoint/root.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".session";

class FileSource final : public ImageSource {
 public:
  FileSource(FileDescriptor file, uint64_t bytes, std::string path)
      : file_(std::move(file)), left_(bytes), path_(std::move(path)) {}
  void read(void* into, size_t size) override {
    check(size <= left_, "[image] the image is damaged: it ends early");
    for (char* at = static_cast<char*>(into); size != 0;) {
      const ssize_t got = ::read(file_.get(), at, size);
      if (got < 0 && errno == EINTR) continue;
      check(got > 0, "[image] cannot read ", path_, ": ", got == 0 ? "it ends early" : std::strerror(errno));
      at += got;
      size -= static_cast<size_t>(got);
      left_ -= static_cast<uint64_t>(got);
    }
  }
  uint64_t left() const override { return left_; }

 private:
  const FileDescriptor file_;
  uint64_t left_;
  const std::string path_;
};

absl::StatusOr<SessionStore::Stored> open_image(const fs::path& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) {
    const int error = errno;
    const std::string text = absl::StrCat(path.native(), ": ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(text) : absl::DataLossError(text);
  }
  SessionStore::Stored stored;
  stored.path = path.native();
  stored.source = std::make_unique<FileSource>(std::move(file), static_cast<uint64_t>(status.st_size), path.native());
  try {
    stored.record = read_record(stored.source.get());
  } catch (const Error& error) {
    return absl::DataLossError(absl::StrCat(path.native(), ": ", error.message()));
  }
  return stored;
}

// Names of principals are checked where they are defined; an empty one belongs to an engine without principals.
bool is_folder_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

}  // namespace

struct SessionStore::Writer::File {
  File(const CheckpointRoot& root, std::string name)
      : root(root), name(std::move(name)), file(root.find(this->name, true)) {}
  const CheckpointRoot root;
  const std::string name;
  ReplacementFile file;
  std::optional<CheckpointRoot::Room> room;
};

absl::StatusOr<std::shared_ptr<SessionStore>> SessionStore::open(const fs::path& folder, bool takes_over) {
  const auto failed = [&](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat("--state-dir ", folder.native(), ": ", what));
  };
  std::error_code error;
  fs::create_directories(folder, error);
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return failed(std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) return failed("expected a folder");
  if (status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return failed("expected a folder of this user that no other one can access; use 'chmod 700'");
  }
  FileDescriptor lock(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return failed(std::strerror(errno));
  if (!takes_over && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return failed(errno == EWOULDBLOCK ? "another engine uses the folder" : std::strerror(errno));
  }
  std::shared_ptr<SessionStore> store(new SessionStore(fs::absolute(folder), std::move(lock)));
  if (absl::Status scanned = store->scan(); !scanned.ok()) return failed(scanned.message());
  return store;
}

void SessionStore::wait_for_lock() {
  while (flock(lock_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

void SessionStore::release_lock() { flock(lock_.get(), LOCK_UN); }

absl::Status SessionStore::scan() {
  std::error_code error;
  MutexLock lock(mutex_);
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(folder_, error)) {
    const fs::path& path = each.path();
    if (path.extension() != kSuffix) continue;  // ReplacementFile removes temporary files that were abandoned
    const absl::StatusOr<Stored> stored = open_image(path);
    const std::string digest = absl::HexStringToBytes(path.stem().native());
    if (!stored.ok()) {
      spdlog::error("the image of a session cannot be used: {}", std::string(stored.status().message()));
      entries_[digest] = {path};
      continue;
    }
    const SessionRecord& record = stored->record;
    last_id_ = std::max(last_id_, record.id);
    const auto wait = std::chrono::duration<double>(std::clamp(record.persistence.wait, 0.0, 1e9));
    entries_[digest] = {path, Clock::now() + std::chrono::duration_cast<Clock::duration>(wait)};
    spdlog::info("session {} of {} waits for its client, which has {:.0f} s", record.id, record.client, wait.count());
  }
  return error ? absl::InternalError(error.message()) : absl::OkStatus();
}

fs::path SessionStore::path_of(const std::string& principal, const std::string& key_digest) const {
  return folder_ / principal / absl::StrCat(absl::BytesToHexString(key_digest), kSuffix);
}

absl::StatusOr<std::unique_ptr<SessionStore::Writer>> SessionStore::begin(const SessionRecord& record,
                                                                          const std::shared_ptr<Quota>& quota) {
  if (!is_folder_name(record.principal)) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a principal with a name, got '", record.principal, "'"));
  }
  const fs::path path = path_of(record.principal, record.key_digest);
  try {
    const CheckpointRoot root(folder_.native(), record.principal, quota);
    auto file = std::make_unique<Writer::File>(root, path.filename().native());
    return std::unique_ptr<Writer>(new Writer(*this, record.key_digest, path, std::move(file)));
  } catch (const Error& error) {
    return absl::UnavailableError(error.message());
  }
}

void SessionStore::remove(const std::string& key_digest) {
  fs::path path;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key_digest);
    if (found == entries_.end()) return;
    path = found->second.path;
    entries_.erase(found);
  }
  std::error_code error;
  fs::remove(path, error);
  if (error) spdlog::warn("cannot remove {}: {}", path.native(), error.message());
}

absl::StatusOr<SessionStore::Stored> SessionStore::find(const std::string& key_digest) const {
  fs::path path;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key_digest);
    if (found == entries_.end()) return absl::NotFoundError("there is no image of the session");
    path = found->second.path;
  }
  return open_image(path);
}

void SessionStore::keep(const std::string& key_digest) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key_digest);
  if (found != entries_.end()) found->second.expires = Clock::time_point::max();
}

SessionStore::Clock::time_point SessionStore::remove_expired() {
  auto next = Clock::time_point::max();
  std::vector<std::string> expired;
  {
    MutexLock lock(mutex_);
    for (const auto& [digest, entry] : entries_) {
      if (entry.expires <= Clock::now()) {
        expired.push_back(digest);
      } else {
        next = std::min(next, entry.expires);
      }
    }
  }
  for (const std::string& digest : expired) {
    spdlog::info("the client of a stored session has not come back; its image is removed");
    remove(digest);
  }
  return next;
}

SessionStore::Writer::Writer(SessionStore& store, std::string digest, fs::path path, std::unique_ptr<File> file)
    : store_(store), digest_(std::move(digest)), path_(std::move(path)), file_(std::move(file)) {}

SessionStore::Writer::~Writer() = default;

void SessionStore::Writer::begin(uint64_t bytes) {
  file_->room.emplace(file_->root.reserve(file_->name, bytes));
  file_->file.reserve(bytes);
}

void SessionStore::Writer::write(const void* data, size_t size) {
  file_->file.append(data, size);
  bytes_ += size;
}

void SessionStore::Writer::commit() {
  file_->file.commit();
  MutexLock lock(store_.mutex_);
  store_.entries_[digest_] = {path_};
}

}  // namespace tt::server
