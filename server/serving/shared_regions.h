// SharedRegions: parts of POSIX shared memory objects of this host that clients have registered, to read inputs from
// and to write outputs to.
//
// The bytes are copied by the system (pread, pwrite) instead of being mapped: a client may shrink its object at any
// time, and an access to a mapping would then end the process. A region belongs to the principal that registered it.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"

namespace tt::server {

class SharedRegions {
 public:
  static constexpr size_t kMaxRegions = 1024, kMaxRegionsOfPrincipal = 128;

  class Region {
   public:
    Region(std::string key, FileDescriptor file, uint64_t offset, uint64_t bytes)
        : key_(std::move(key)), file_(std::move(file)), offset_(offset), bytes_(bytes) {}
    const std::string& key() const { return key_; }
    uint64_t offset() const { return offset_; }
    uint64_t bytes() const { return bytes_; }
    // `offset` is relative to the region. INVALID_ARGUMENT if the bytes are not in it, or not in the object any more.
    absl::Status read(uint64_t offset, uint64_t size, std::string* into) const;
    absl::Status write(uint64_t offset, absl::string_view bytes) const;

   private:
    absl::Status check(uint64_t offset, uint64_t size) const;

    const std::string key_;
    const FileDescriptor file_;
    const uint64_t offset_, bytes_;
  };
  using RegionPointer = std::shared_ptr<const Region>;

  // `key` is the object's name for shm_open(). INVALID_ARGUMENT if it does not exist, is too small, or belongs to
  // another user of the system, who has not opened it to all, ALREADY_EXISTS if the principal has a region of this
  // name.
  absl::Status add(const std::string& principal, const std::string& name, const std::string& key, uint64_t offset,
                   uint64_t bytes);
  // NOT_FOUND if there is none.
  absl::StatusOr<RegionPointer> find(const std::string& principal, const std::string& name) const;
  std::vector<std::pair<std::string, RegionPointer>> list(const std::string& principal) const;
  // Removes one region, or with an empty name all of the principal. Not an error if there is none.
  void remove(const std::string& principal, const std::string& name);

 private:
  using Key = std::pair<std::string, std::string>;  // principal and name
  mutable Mutex mutex_;
  std::map<Key, RegionPointer> regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
