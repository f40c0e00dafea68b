// DeferredUploads: uploads in progress whose `uploaded` instruction has not been issued.
//
// The instruction waits in the engine for the upload's bytes, and every later instruction waits behind it. So a Session
// issues it before the first instruction that uses the tensor: work that is issued between an upload and its use
// does not wait for the bytes. Owned by a Session, which takes entries only while it appends to a frame. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/mutex.h"
#include "engine/schema/device.h"
#include "engine/schema/dtype.h"
#include "engine/schema/meta.h"

namespace tt::client {

// The arguments and the result of an `uploaded` instruction.
struct DeferredUpload {
  uint64_t handle;
  uint64_t transfer;
  Sizes sizes;
  DType dtype;
  Device device;
  uint32_t site;
};

class DeferredUploads {
 public:
  // Maximum number of entries; less than the number of uploads that an engine accepts before their instructions.
  static constexpr size_t kMax = 64;

  // Whether there are entries. Costs one load.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  bool contains(uint64_t handle) const;
  // Adds an entry, whose handle must be greater than those before it. Returns the oldest one if there are more than
  // kMax.
  std::optional<DeferredUpload> add(DeferredUpload upload);
  // Removes and returns the entry with this handle.
  std::optional<DeferredUpload> take(uint64_t handle);
  // Removes and returns the oldest entry.
  std::optional<DeferredUpload> take_oldest();

 private:
  using Uploads = std::deque<DeferredUpload>;
  Uploads::const_iterator find(uint64_t handle) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  DeferredUpload take_at(Uploads::const_iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::atomic<size_t> count_{0};
  Uploads uploads_ ABSL_GUARDED_BY(mutex_);  // ascending handles
};

}  // namespace tt::client
