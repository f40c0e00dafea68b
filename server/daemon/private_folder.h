// PrivateFolder: the folder of a private engine's socket, in $XDG_RUNTIME_DIR or /tmp, mode 0700.
//
// The process holds a lock on the folder while it runs, so a stale folder without a lock belongs to a killed engine.
// Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tt::server {

class PrivateFolder {
 public:
  // Creates a folder, after removing stale folders of this user's killed engines.
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> make();
  ~PrivateFolder() { remove(); }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::string address() const { return "unix:" + path_ + "/engine.sock"; }
  // Removes the socket and the folder. Idempotent.
  void remove();

 private:
  PrivateFolder(std::string path, FileDescriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  FileDescriptor lock_;
};

}  // namespace tt::server
