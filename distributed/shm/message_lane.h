// LaneSender, LaneReceiver: messages with tags from one rank to another, through a ring of chunks in shared memory.
//
// Used by one thread at a time each. Functions block until the peer makes progress, and throw Error (RuntimeError) with
// the text of problem(), which they call while they wait. An error in the middle of a message makes the lane unusable;
// after other errors the next message can be sent or received.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "distributed/shm/segment.h"

namespace tt::distributed::shm {

using Problem = absl::FunctionRef<std::optional<std::string>()>;

class LaneSender {
 public:
  LaneSender(const Segment& segment, int peer, std::chrono::microseconds spin);
  void send(uint32_t tag, absl::Span<const char> bytes, Problem problem);

 private:
  const Segment& segment_;
  const int peer_;
  const std::chrono::microseconds spin_;
  LaneHeader& header_;
  char* const chunks_;
  uint32_t produced_ = 0;
  uint32_t allocated_ = 0;  // chunks that have memory
  bool broken_ = false;
};

class LaneReceiver {
 public:
  // Bytes of messages that are stored because a message with another tag is received first.
  static constexpr size_t kMaxReordered = size_t{64} << 20;

  LaneReceiver(const Segment& segment, int peer, std::chrono::microseconds spin);
  // Messages with another tag that precede the message are stored for later calls. Also throws if they exceed
  // kMaxReordered, or if the message has another size: then it is discarded.
  void receive(uint32_t tag, absl::Span<char> bytes, Problem problem);
  // Waits until receive() of the tag has a message, and returns true; returns false if `stop` becomes true first. Also
  // stores messages with other tags.
  bool await_message(uint32_t tag, const std::atomic<bool>& stop, Problem problem);
  // Makes await_message() check `stop` now. Any thread may call it.
  void wake() const { internal::futex_wake(header_.produced); }

 private:
  void wait_for_chunk(Problem problem);
  // Stores the next message, of another tag than `tag`.
  void store_message(uint32_t tag, Problem problem);
  uint32_t next_tag() const;  // requires a chunk
  // Receives `total` bytes of a message, of which the first `kept` are stored in `to` and the rest is discarded.
  void read(char* to, size_t kept, uint64_t total, Problem problem);

  const int peer_;
  const std::chrono::microseconds spin_;
  LaneHeader& header_;
  const char* const chunks_;
  uint32_t consumed_ = 0;
  bool broken_ = false;
  std::map<uint32_t, std::deque<std::vector<char>>> reordered_;  // per tag
  size_t reordered_bytes_ = 0;
};

}  // namespace tt::distributed::shm
