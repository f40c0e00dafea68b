// ReadOnlyStorages: the storages of a session that were published, so that a call which would write to one is refused
// where it is made.
//
// Owned by a Session. Storages are never removed: their numbers are not used again, and an entry takes a few bytes. The
// engine refuses such calls too, when it executes them. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "client/session/tensor.h"
#include "engine/schema/op.h"

namespace tt::client {

class ReadOnlyStorages {
 public:
  void add(uint64_t storage);
  bool contains(uint64_t storage) const;
  // Throws Error if the call writes to one of the storages. Costs a load if there are none.
  void check_call(const Op& op, Args args, absl::Span<const Tensor> into) const {
    if (any_.load(std::memory_order_relaxed)) [[unlikely]]
      check_written(op, args, into);
  }

 private:
  void check_written(const Op& op, Args args, absl::Span<const Tensor> into) const;

  std::atomic<bool> any_{false};
  mutable Mutex mutex_;
  absl::flat_hash_set<uint64_t> storages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::client
