// TensorSnapshot: the elements that a tensor on the CPU has when an instruction runs, which a thread writes to a file.
//
// The elements are not copied: they are read from the tensor's storage until the session is about to write to it
// (WriteObserver, engine/session/context.h), and are copied then. Created and copied on the session's thread, read by
// one other thread. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "engine/tensor/tensor.h"
#include "server/transfer/host_reader.h"

namespace tt::server {

class TensorSnapshot {
 public:
  // Requires a tensor on the CPU. Throws Error if the session has no memory for it.
  explicit TensorSnapshot(Tensor tensor);
  TensorSnapshot(const TensorSnapshot&) = delete;
  TensorSnapshot& operator=(const TensorSnapshot&) = delete;

  size_t bytes() const { return bytes_; }
  DType dtype() const { return dtype_; }
  const Sizes& sizes() const { return sizes_; }

  // Copies the next bytes in row-major order, at most `into.size()`, and updates their CRC-32. Returns their number.
  // Throws Error if copy() had no memory for the elements.
  size_t read(absl::Span<char> into, uint32_t* checksum);
  // Frees the elements; they have been read.
  void release();

  // On the session's thread, before a write to the storage: copies the elements, charged to the session. Waits for a
  // read() in progress, which takes less than a millisecond of a processor's time. Without memory, read() fails
  // instead.
  void copy();

 private:
  const size_t bytes_;
  const DType dtype_;
  const Sizes sizes_;
  Mutex mutex_;
  Tensor tensor_ ABSL_GUARDED_BY(mutex_);  // the session's, or a copy, which is contiguous
  bool is_copied_ ABSL_GUARDED_BY(mutex_) = false;
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Error> error_ ABSL_GUARDED_BY(mutex_);
  std::optional<HostReader> reader_ ABSL_GUARDED_BY(mutex_);  // of a tensor that is not contiguous
  std::vector<char> gathered_;                                // its next bytes; used by the reading thread
  size_t taken_ = 0;                                          // of gathered_
};

// The snapshots of one session's unfinished writes. Used on the session's thread.
class TensorSnapshots final : public WriteObserver {
 public:
  // Copies the snapshot before the storage of `tensor` is written.
  void add(const Tensor& tensor, const std::shared_ptr<TensorSnapshot>& snapshot);
  void before_write(const Tensor& tensor) override;
  // Forgets snapshots that no write uses any more.
  void remove_finished();

 private:
  // A storage may be freed, and its address used again, once its snapshots have expired.
  absl::flat_hash_map<const Storage*, std::vector<std::weak_ptr<TensorSnapshot>>> by_storage_;
};

// Returns the tensor's elements in new contiguous memory of the CPU, which is charged to the session. Waits for the
// device.
Tensor host_copy(const Tensor& tensor);

}  // namespace tt::server
