// OffloadFolder: the files in which tensors of idle sessions are kept while another session needs their memory.
//
// A private folder of this process, below --offload-dir: mode 0700, with files that only the engine's user can read.
// The process holds a lock on it while it runs; the folders of processes that were killed are removed when another
// engine opens --offload-dir. Files contain the values of clients' tensors, and no names. The limits hold for the bytes
// of all files and of those of each principal. Thread-safe; calls may block for as long as the file system does.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"

namespace tt::server {

class OffloadFolder : public std::enable_shared_from_this<OffloadFolder> {
 public:
  // In bytes; 0: no limit.
  struct Limits {
    uint64_t total = 0;
    uint64_t per_principal = 0;
  };

  // Creates `folder` if it is missing, removes what killed processes have left in it, and creates this process's
  // folder. Fails if other users can access `folder`. The message of an error is one line.
  static absl::StatusOr<std::shared_ptr<OffloadFolder>> open(const std::filesystem::path& folder, Limits limits);
  ~OffloadFolder() { remove(); }
  OffloadFolder(const OffloadFolder&) = delete;
  OffloadFolder& operator=(const OffloadFolder&) = delete;

  class File;
  // Creates a file for `bytes` bytes, which count as the principal's until it is destroyed. Throws Error if a limit
  // would be exceeded or the disk has no room.
  std::unique_ptr<File> create(const std::string& principal, uint64_t bytes);
  // The number of bytes that a new file of the principal may have.
  uint64_t room(const std::string& principal) const;
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  const Limits& limits() const { return limits_; }
  // The path of this process's folder.
  const std::filesystem::path& path() const { return path_; }
  // Removes the files and this process's folder; later calls of create() fail. Idempotent. For a process that exits
  // without destroying its sessions.
  void remove();

 private:
  OffloadFolder(std::filesystem::path path, FileDescriptor descriptor, Limits limits)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), limits_(limits) {}
  uint64_t room_locked(const std::string& principal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void refund(const std::string& principal, uint64_t bytes);

  const std::filesystem::path path_;
  const FileDescriptor descriptor_;  // of the folder, locked
  const Limits limits_;
  std::atomic<uint64_t> bytes_{0};  // of all files; written under mutex_
  mutable Mutex mutex_;
  uint64_t last_name_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, uint64_t> by_principal_ ABSL_GUARDED_BY(mutex_);
  bool removed_ ABSL_GUARDED_BY(mutex_) = false;
};

// A file, which is removed by the destructor. It is open only while it is written or read. Used by one thread at a
// time.
class OffloadFolder::File {
 public:
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Appends bytes, at most as many in total as create() was called with. Throws Error.
  void append(const void* data, size_t size);
  // Fills `into` with the bytes from `offset`. Throws Error if the file has fewer or cannot be read.
  void read(uint64_t offset, void* into, size_t size);
  // Closes the descriptor until the next read().
  void close() { descriptor_.reset(); }
  uint64_t size() const { return size_; }

 private:
  friend class OffloadFolder;
  File(std::shared_ptr<OffloadFolder> folder, std::string name, std::string principal, uint64_t charged)
      : folder_(std::move(folder)), name_(std::move(name)), principal_(std::move(principal)), charged_(charged) {}

  const std::shared_ptr<OffloadFolder> folder_;
  const std::string name_;
  const std::string principal_;
  const uint64_t charged_;
  uint64_t size_ = 0;
  FileDescriptor descriptor_;
};

}  // namespace tt::server
