// PendingReads: the reads whose answers have not all arrived. Guarded by the Link's mutex.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/wire.h"

namespace tt::client {

// One caller's read of several handles, on its stack while it waits.
struct PendingRead {
  uint64_t sequence;  // of the frame that requests it
  uint64_t first_request;
  std::vector<v1::ReadResult> results;  // by request
  size_t missing;
};

class PendingReads {
 public:
  void add(PendingRead* read) { reads_.push_back(read); }
  void remove(PendingRead* read) { std::erase(reads_, read); }
  // Moves the result to the read that requested it; drops it if that caller has left.
  void answer(v1::ReadResult& result);
  // The last sequence up to `executed` whose answers have all arrived. A frame that was executed is acknowledged only
  // then: after a resume the engine confirms later frames with a frame's reply, and sends their answers again.
  uint64_t answered_through(uint64_t executed) const;

 private:
  std::vector<PendingRead*> reads_;
};

}  // namespace tt::client
