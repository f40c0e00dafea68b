// Counters: totals of a session since its start.
#pragma once

#include <cstdint>
#include <string>

#include "client/transport/transport.h"

namespace tt::client {

struct Counters {
  uint64_t instructions = 0;
  uint64_t frames = 0;
  uint64_t bytes_sent = 0;
  uint64_t waits = 0;          // reads and uploads that waited for the engine
  double seconds_waited = 0;   // total duration of these waits
  double seconds_blocked = 0;  // waited until the engine had executed enough of the queued calls

  // The link at present.
  double round_trip = 0;                // seconds; the shortest that was measured
  uint64_t frames_in_flight = 0;        // sent and not acknowledged
  uint64_t max_frames_in_flight = 0;    // InFlightLimit
  uint64_t upload_bytes_in_flight = 0;  // bytes of uploads in the background
  TransferCounters transfers;
};

enum class WaitKind {
  kRead,    // waits for a value, a size that depends on data, or the end of all work
  kUpload,  // waits until the engine has received the bytes
  kWindow,  // waits until the engine has executed enough of the queued calls
};
inline constexpr int kWaitKinds = 3;

// Waits for the engine at one source line.
struct WaitCount {
  std::string where;  // "train.py:12 in step"; "" for calls without a line
  WaitKind kind = WaitKind::kRead;
  uint64_t count = 0;
  double seconds = 0;
};

}  // namespace tt::client
