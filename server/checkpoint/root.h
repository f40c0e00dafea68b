// CheckpointRoot: the folder below which a session may read and write checkpoints.
//
// Immutable and thread-safe. Every function throws Error, whose message has the client's path, never the host's.
// Below a given folder, symbolic links are not followed and '..' is rejected, so no path leaves the folder: each
// component is opened relative to the previous one. An unrestricted root, for a private engine that runs as its client,
// resolves paths as the client does. Calls may block for as long as the file system does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/memory/quota.h"

namespace tt::server {

class CheckpointRoot {
 public:
  // The folder `path`, an absolute path on the host. If `principal` is not empty, its subfolder of that name, which is
  // created at the first use. `quota`: the principal's; null: none.
  explicit CheckpointRoot(std::string path, std::string principal = "", std::shared_ptr<Quota> quota = nullptr);
  // All files that the process can access. Relative paths start at the process's working folder.
  static std::shared_ptr<const CheckpointRoot> unrestricted();

  // The folder that contains a file, and the file's name in it.
  struct Place {
    FileDescriptor folder;  // O_PATH
    std::string name;
    std::string path;  // the client's path, for messages
  };
  // `create`: whether missing folders are created, within the quota. `missing`, if not null, is set instead of throwing
  // Error if a folder does not exist; the result is then invalid.
  Place find(std::string_view path, bool create, bool* missing = nullptr) const;
  // The quota's room for a file that is being written.
  class Room {
   public:
    Room() = default;
    Room(std::shared_ptr<Quota> quota, uint64_t bytes) : quota_(std::move(quota)), bytes_(bytes) {}
    Room(Room&& other) noexcept : quota_(std::move(other.quota_)), bytes_(other.bytes_) {}
    Room& operator=(Room&&) = delete;
    ~Room() {
      if (quota_) quota_->release_checkpoint(bytes_);
    }

   private:
    std::shared_ptr<Quota> quota_;
    uint64_t bytes_ = 0;
  };
  // Reserves room for a file that replaces the one at `path`, while the result exists. Throws Error if the files of the
  // principal would exceed its quota: in bytes, or in their number with the folders.
  [[nodiscard]] Room reserve(std::string_view path, uint64_t bytes) const;
  // Opens a regular file for reading.
  FileDescriptor open_file(std::string_view path) const;

  struct Entry {
    std::string name;
    enum class Type : uint8_t { kFile, kFolder, kOther } type = Type::kOther;
    uint64_t bytes = 0;
  };
  // Returns the entries of a folder, sorted by name. Files of other writers in progress are left out.
  std::vector<Entry> list(std::string_view path) const;

  // Renames a file or folder atomically and removes what was there before: a file, or a folder that contains only the
  // files of a checkpoint (is_checkpoint_file). Both paths must be on one file system.
  void rename(std::string_view source, std::string_view target) const;
  // Removes a file, or a folder that contains only the files of a checkpoint. Returns the number of files and folders.
  int64_t remove(std::string_view path) const;

 private:
  CheckpointRoot() : unrestricted_(true) {}
  std::vector<std::string> components(std::string_view path) const;
  FileDescriptor open_start(std::string_view path) const;
  FileDescriptor open_folder(int parent, const std::string& name, bool create, std::string_view path,
                             bool* missing = nullptr) const;

  const std::shared_ptr<Quota> quota_;
  const std::string path_;       // without '/' at the end
  const std::string principal_;  // name of the subfolder; empty: none
  const bool unrestricted_ = false;
};

// Whether a file of this name may be removed with its folder: it ends in .safetensors or .json, or is a temporary file.
bool is_checkpoint_file(std::string_view name);

}  // namespace tt::server
