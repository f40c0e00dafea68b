// Storage: a block of a device's memory, shared by the tensors that view it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "engine/memory/allocator.h"
#include "engine/schema/device.h"
#include "engine/schema/ref.h"
#include "engine/schema/thread_cached.h"
#include "engine/tensor/pending_errors.h"

namespace tt {

// Copies of a storage's values that a backend made in a library's own layouts. Thread-safe.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
};

class SharedBytes;

class Storage final : public RefCounted, public ThreadCached<Storage> {
 public:
  // Charges the current AllocScope's account, then allocates. Throws Error(kOutOfMemory) without charging. Meta
  // devices allocate and charge nothing.
  Storage(Device device, size_t bytes);
  // Allocates host memory from `staging`, a pool other than the CPU's whose memory a device can access directly.
  Storage(Allocator& staging, size_t bytes);
  // Returns a storage over the bytes of another session's storage, on which share() was called, or `shared` itself if
  // it is charged to `account`. Versions and pending errors are those of each session. `account` is charged for all
  // bytes, once for all its storages over them, until the last of these is destroyed: every session that can keep the
  // bytes allocated pays for them. A quota is charged once for all its accounts. Throws Error(kOutOfMemory) without
  // charging.
  static Ref<Storage> over(const Ref<Storage>& shared, const std::shared_ptr<Account>& account);
  ~Storage() override;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // Number of in-place writes. backward() rejects a saved tensor whose storage has a newer version. Written only by the
  // session's thread.
  uint32_t version() const { return version_; }
  void bump_version() { ++version_; }
  // Whether another session may write to the bytes, so that nothing derived from them may be kept. Thread-safe.
  bool is_shared() const { return shared_.load(std::memory_order_acquire); }
  // Call on the session's thread, before another session gets the storage for over(). Has no effect on read-only bytes.
  void share();
  // Lets over() be called; share() and freeze() do too. Call on the session's thread.
  void make_shareable();
  // Whether the bytes never change again. The dispatcher refuses calls that write to them. Used by the session's
  // thread.
  bool is_read_only() const { return read_only_; }
  // Makes the bytes read-only, for good and for every storage over them, and lets other sessions get the storage for
  // over(). Call on the session's thread, when nothing writes to the bytes. Requires that no other session may write to
  // them: is_shared() is false.
  void freeze();
  // The number of accounts that are charged for the bytes; 0 if they were never shared. Thread-safe, if no other thread
  // calls share() or freeze().
  size_t num_holders() const;
  // Whether the bytes can leave the device for a while: they belong to this storage alone, and it has them now.
  bool can_release_bytes() const { return allocator_ != nullptr && data_ != nullptr; }
  // Frees the bytes, which the caller has copied. data() is null until allocate_bytes(). The account stays charged.
  // Requires can_release_bytes(), and that nothing else uses the storage in between.
  void release_bytes();
  // Allocates the bytes again, uninitialised. Throws Error(kOutOfMemory) without an effect.
  void allocate_bytes();
  // Calls with pending device checks that the bytes depend on (engine/session/async_errors.h). Written only by the
  // session's thread.
  PendingErrors pending_errors;
  // The storage's packed copies, made by `make` at first use and freed with the bytes. Requires that every caller on
  // one device makes the same type. Thread-safe.
  PackedWeights& packed_weights(absl::FunctionRef<std::unique_ptr<PackedWeights>()> make);

 private:
  Storage(Ref<SharedBytes> bytes, const std::shared_ptr<Account>& account);
  void allocate(Allocator& allocator, Stream* stream);

  void* data_ = nullptr;
  Allocator* allocator_ = nullptr;  // null if there are no bytes
  size_t bytes_;
  Device device_;
  uint32_t version_ = 0;
  std::atomic<bool> shared_{false};
  bool read_only_ = false;
  std::shared_ptr<Account> account_;
  Ref<SharedBytes> shared_bytes_;                        // owns the bytes after share()
  std::atomic<PackedWeights*> packed_weights_{nullptr};  // owned
};

}  // namespace tt
