#include "server/checkpoint/replacement_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/checkpoint/file_error.h"

namespace tt::server {
namespace {

constexpr std::string_view kPrefix = ".checkpoint-";
constexpr std::string_view kSuffix = ".tmp";
// A writer locks its file right after creating it. Until a file is older than this, it may not be locked yet.
constexpr time_t kUnlockedSeconds = 60;
constexpr size_t kAlignment = 4096;  // of writes without the page cache

// Removes temporary files whose writers have died: their locks are free. Errors are ignored.
void remove_abandoned(int folder) {
  FileDescriptor readable(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* stream = readable ? fdopendir(readable.get()) : nullptr;
  if (stream == nullptr) return;
  readable.release();
  const absl::Cleanup close = [stream] { closedir(stream); };
  while (const dirent* entry = readdir(stream)) {
    if (!is_temporary_name(entry->d_name)) continue;
    const FileDescriptor file(openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const bool is_new = status.st_mtime + kUnlockedSeconds > std::time(nullptr);
    if (!is_new && flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlinkat(folder, entry->d_name, 0);
  }
}

}  // namespace

std::string new_temporary_name() {
  uint64_t bits = 0;
  check(getrandom(&bits, sizeof bits, 0) == sizeof bits, "getrandom failed");
  return absl::StrCat(message_part(kPrefix), absl::Hex(bits, absl::kZeroPad16), message_part(kSuffix));
}

bool is_temporary_name(std::string_view name) { return name.starts_with(kPrefix) && name.ends_with(kSuffix); }

ReplacementFile::ReplacementFile(CheckpointRoot::Place place, bool bypasses_cache) : place_(std::move(place)) {
  buffers_[filled_].memory = allocate_io_buffer(kBufferBytes);
  remove_abandoned(place_.folder.get());
  const std::string name = new_temporary_name();
  file_.reset(openat(place_.folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_) fail_to("create");
  temporary_ = name;
  // Where the file system has no locks, an abandoned file is kept.
  static_cast<void>(flock(file_.get(), LOCK_EX | LOCK_NB));
  is_direct_ = bypasses_cache && fcntl(file_.get(), F_SETFL, O_DIRECT) == 0;
}

ReplacementFile::~ReplacementFile() {
  if (!temporary_.empty()) unlinkat(place_.folder.get(), temporary_.c_str(), 0);
}

void ReplacementFile::fail_to(const char* verb) const { fail_with(errno, verb, place_.path); }

void ReplacementFile::reserve(uint64_t bytes) {
  if (bytes == 0 || fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) fail_to("write");
}

void ReplacementFile::write_bytes(const char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t written = write(file_.get(), data + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    // A write that ended within a block: use the page cache.
    if (written < 0 && errno == EINVAL && std::exchange(is_direct_, false) && fcntl(file_.get(), F_SETFL, 0) == 0) {
      continue;
    }
    if (written < 0) fail_to("write");
    done += static_cast<size_t>(written);
  }
  if (!is_direct_) {
    // Starts the transfer to the disk, so that commit() has little left to wait for; it reports a failure.
    static_cast<void>(
        sync_file_range(file_.get(), static_cast<off_t>(size_), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE));
  }
  size_ += size;
}

void ReplacementFile::write_buffer() {
  Buffer& full = buffers_[filled_];
  const size_t size = std::exchange(buffered_, 0);
  if (!is_overlapped_) {
    wait_for_writes();
    return write_bytes(full.memory.get(), size);
  }
  const auto write =
      std::make_shared<std::packaged_task<void()>>([this, data = full.memory.get(), size] { write_bytes(data, size); });
  full.written = write->get_future();
  try {
    writes_.add([write] { (*write)(); });
  } catch (const std::system_error&) {  // no more threads
    (*write)();
  }
  filled_ = (filled_ + 1) % kBuffers;
  Buffer& next = buffers_[filled_];
  if (next.written.valid()) next.written.get();
  if (!next.memory) next.memory = allocate_io_buffer(kBufferBytes);
}

void ReplacementFile::wait_for_writes() {
  for (size_t i = 0; i < kBuffers; ++i) {
    std::future<void>& written = buffers_[(filled_ + i) % kBuffers].written;
    if (written.valid()) written.get();
  }
}

absl::Span<char> ReplacementFile::space() {
  if (buffered_ == kBufferBytes) write_buffer();
  return {buffers_[filled_].memory.get() + buffered_, kBufferBytes - buffered_};
}

void ReplacementFile::append(const void* data, size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size != 0) {
    const absl::Span<char> free = space();
    const size_t part = std::min(size, free.size());
    std::memcpy(free.data(), from, part);
    advance(part);
    from += part;
    size -= part;
  }
}

void ReplacementFile::write_end() {
  wait_for_writes();
  const char* data = buffers_[filled_].memory.get();
  const size_t size = std::exchange(buffered_, 0);
  const size_t aligned = is_direct_ ? size / kAlignment * kAlignment : 0;
  write_bytes(data, aligned);
  if (std::exchange(is_direct_, false) && fcntl(file_.get(), F_SETFL, 0) != 0) fail_to("write");
  write_bytes(data + aligned, size - aligned);
}

void ReplacementFile::overwrite(uint64_t offset, std::string_view bytes) {
  write_end();
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written =
        pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to("write");
    done += static_cast<size_t>(written);
  }
}

void ReplacementFile::commit() {
  write_end();
  if (fsync(file_.get()) != 0) fail_to("write");
  const int folder = place_.folder.get();
  if (renameat(folder, temporary_.c_str(), folder, place_.name.c_str()) != 0) fail_to("replace");
  temporary_.clear();
  const FileDescriptor readable(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable || fsync(readable.get()) != 0) fail_to("write");
}

}  // namespace tt::server
