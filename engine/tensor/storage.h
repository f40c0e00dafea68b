// Storage: one block of a device's bytes, shared by the tensors that view it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "engine/memory/allocator.h"
#include "engine/schema/device.h"
#include "engine/schema/recycled.h"
#include "engine/schema/ref.h"
#include "engine/tensor/pending_errors.h"

namespace tt {

// A backend's copies of a storage's values in a library's own layouts. Thread-safe.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
};

class Storage final : public RefCounted, public Recycled<Storage> {
 public:
  // Charges Context::current().account, then allocates. Throws Error(kOutOfMemory); nothing is
  // held then. Meta devices get no bytes and pay nothing.
  Storage(Device device, size_t bytes);
  // Host memory of another pool than the CPU's own: what a device reads and writes by itself.
  Storage(Allocator& staging, size_t bytes);
  ~Storage() override;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // Counts writes in place. A saved tensor whose storage has moved on cannot be used in backward.
  // Written by the session's thread only.
  uint32_t version() const { return version_; }
  void bump_version() { ++version_; }
  // Which unsettled calls the bytes came from (engine/session/async_errors.h). Written by the session's thread only.
  PendingErrors taint;
  // The storage's packed copies, made by `make` at first use and freed with the bytes. Requires that every caller on
  // one device makes the same type. Thread-safe.
  PackedWeights& packed_weights(absl::FunctionRef<std::unique_ptr<PackedWeights>()> make);

 private:
  void allocate(Allocator& allocator, Stream* stream);

  void* data_ = nullptr;
  Allocator* allocator_ = nullptr;  // null where there are no bytes
  size_t bytes_;
  Device device_;
  uint32_t version_ = 0;
  std::shared_ptr<Account> account_;
  std::atomic<PackedWeights*> packed_weights_{nullptr};  // owned
};

}  // namespace tt
