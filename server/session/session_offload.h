// SessionOffload: the tensors of one idle session that have left their device, because another session needed its
// memory, and return when the session is used.
//
// A storage's bytes are in a file of the engine's OffloadFolder, or without one, if the device is a GPU, in host
// memory. The Storage itself stays where it is, without bytes, so that tensors, views and the tape are not affected.
// The session's account stays charged for it: a session never returns to more than its limit. Bytes in files have a
// checksum, which is kept in memory: what was damaged on the disk is an error, not a number.
//
// Owned by the Session, and used under its mutex with its Context current; any() and bytes() may be called by any
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/memory/account.h"
#include "engine/tensor/storage.h"
#include "server/session/offload_folder.h"

namespace tt::server {

// Where the engine's sessions keep what has left a device, and what has happened since the engine's start. Thread-safe.
struct OffloadPlace {
  explicit OffloadPlace(std::shared_ptr<OffloadFolder> folder) : folder(std::move(folder)) {}
  const std::shared_ptr<OffloadFolder> folder;  // null: host memory, for GPUs only
  std::atomic<uint64_t> bytes{0};               // of all sessions, now
  std::atomic<uint64_t> left{0}, returned{0};   // how often sessions' tensors have left a device, and returned
  std::atomic<uint64_t> failures{0};            // moves that failed, in both directions
};

class SessionOffload {
 public:
  SessionOffload(std::shared_ptr<OffloadPlace> place, std::string principal, std::shared_ptr<Account> account);
  ~SessionOffload();
  SessionOffload(const SessionOffload&) = delete;
  SessionOffload& operator=(const SessionOffload&) = delete;

  // Whether some bytes have left.
  bool any() const { return bytes() != 0; }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Whether storages of this device can leave it now.
  bool accepts(Device device) const {
    return place_->folder != nullptr ? place_->folder->room(principal_) != 0 : device.type == DeviceType::kCUDA;
  }

  // Moves bytes of `storages`, the largest first, until `wanted` bytes of their device are free or nothing else has
  // room in the folder. Returns the number of bytes that were freed. Requires Storage::can_release_bytes(), and that
  // nothing else uses the storages. Throws Error without an effect.
  uint64_t move_out(std::vector<Ref<Storage>> storages, uint64_t wanted);
  // Brings everything back that is still in use. Allocates all memory first, the largest blocks first, because free
  // memory may be fragmented. Throws Error, after which everything is where it was: the call may be repeated.
  void bring_back();
  // Drops what has left and is not in use any more.
  void drop_unused();

  // Calls visit(data, size) with the bytes of a storage that has left, in order. Throws Error, perhaps after some
  // calls.
  void read(const Storage& storage, absl::FunctionRef<void(const char*, size_t)> visit);

  // Drops everything, for a session that ends.
  void clear();

 private:
  class HostBytes;
  struct Record;
  struct Part;
  struct Found {
    Part* part = nullptr;
    const Record* record = nullptr;
  };
  Found find(const Storage& storage) const;
  static std::vector<Ref<Storage>> choose(std::vector<Ref<Storage>> storages, uint64_t wanted, uint64_t room);
  void copy_out(Part& part, Record& record);
  void copy_back(Part& part, const Record& record);
  void set_bytes(uint64_t bytes);

  const std::shared_ptr<OffloadPlace> place_;
  const std::string principal_;
  const std::shared_ptr<Account> account_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace tt::server
