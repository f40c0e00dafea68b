// ScalarReads: reads of single numbers between instructions (v1::Frame::scalar_reads), in the order of their requests.
//
// Such a read adds a few bytes to its frame and 16 to the reply; the engine needs no copy of the tensor, and answers
// all of a frame's together. Guarded by the Link's mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "engine/schema/ref.h"
#include "proto/wire.h"

namespace tt::client {

// A requested number, shared by the caller and the ScalarReads. Any thread may call has_arrived(); after it has
// returned true, the other members do not change.
class PendingScalar final : public RefCounted {
 public:
  static constexpr size_t kBytes = 16;  // of an element in a reply

  explicit PendingScalar(uint64_t sequence) : sequence(sequence) {}
  bool has_arrived() const { return arrived_.load(std::memory_order_acquire); }

  const uint64_t sequence;           // of the frame that contains the request
  char bytes[kBytes] = {};           // the element, then zeros
  std::unique_ptr<v1::Error> error;  // null if the element could be read

 private:
  friend class ScalarReads;
  std::atomic<bool> arrived_{false};
};

class ScalarReads {
 public:
  // Maximum number of unanswered reads. The engine keeps at least as many answers for a client that reconnects.
  static constexpr size_t kMax = 8192;

  bool is_full() const { return pending_.size() >= kMax; }
  // Adds a read to `frame`, to which the caller assigns `sequence`. Requires !is_full().
  Ref<PendingScalar> add(uint64_t handle, uint64_t sequence, v1::Frame* frame);
  // Stores the answers of a reply. Ignores those of reads that are answered already, or were never requested.
  void answer(v1::Reply& reply);
  // Returns the last sequence, at most `executed`, up to which all answers have arrived (PendingReads).
  uint64_t answered_through(uint64_t executed) const;

 private:
  uint64_t first_ = 1;                      // number of the first pending read
  std::deque<Ref<PendingScalar>> pending_;  // from the first read without an answer on
};

}  // namespace tt::client
