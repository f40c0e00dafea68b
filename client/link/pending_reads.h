// PendingReads: reads that wait for answers of the engine. Guarded by the Link's mutex.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/wire.h"

namespace tt::client {

// One caller's read of several handles, owned by the caller.
struct PendingRead {
  uint64_t sequence = 0;  // sequence of the frame that contains the requests
  uint64_t first_request = 0;
  std::vector<v1::ReadResult> results;  // in the order of requests
  size_t missing = 0;                   // answers that have not arrived
};

class PendingReads {
 public:
  void add(PendingRead* read) { reads_.push_back(read); }
  void remove(PendingRead* read) { std::erase(reads_, read); }
  // Moves `result` to the read that requested it. Drops `result` if the caller of that read no longer waits.
  void answer(v1::ReadResult& result);
  // Returns the last sequence, at most `executed`, up to which all answers have arrived. An executed frame is
  // acknowledged only when its answers have arrived, because after a resume the engine confirms later frames with one
  // reply and sends their answers again.
  uint64_t answered_through(uint64_t executed) const;

 private:
  std::vector<PendingRead*> reads_;
};

}  // namespace tt::client
