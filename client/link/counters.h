// Counters: totals of a session since its start.
#pragma once

#include <cstdint>
#include <string>

namespace tt::client {

struct Counters {
  uint64_t instructions = 0;
  uint64_t frames = 0;
  uint64_t bytes_sent = 0;
  uint64_t waits = 0;  // number of times that a caller waited for the engine
  double seconds_waited = 0;
};

// Waits for the engine at one source line.
struct WaitCount {
  std::string where;  // "train.py:12 in step"; "" for calls without a line
  uint64_t count = 0;
  double seconds = 0;
};

}  // namespace tt::client
