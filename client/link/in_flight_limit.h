// InFlightLimit: the number of unacknowledged frames that keeps an engine busy over a link with delay.
//
// An engine that executes a frame in time T behind a round trip R is busy if about R / T + 1 frames are in flight.
// Every frame beyond that only waits in a buffer. The limit is therefore
//
//   kBase + R / max(T / kGain, kMinSpacing), at most kMax,
//
// with R the shortest round trip seen so far and T the smoothed time between acknowledgements. With few frames in
// flight, T is the round trip divided by their number, so that the gain doubles the limit once per round trip until
// the engine sets the pace. kMinSpacing keeps a client whose frames are nearly empty from sending more of them than
// are useful.
//
// R begins with the round trip of Hello, which is not delayed by other work: the time until a frame is acknowledged
// includes the execution of the frames before it, and the limit would grow with its own queue.
//
// Owned by a Link and guarded by its mutex. Reads no clock: callers pass the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace tt::client {

class InFlightLimit {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr uint64_t kBase = 2;  // one frame is executed while the next one arrives
  static constexpr uint64_t kMax = 512;
  static constexpr int kGain = 2;
  static constexpr std::chrono::microseconds kMinSpacing{500};

  // Starts measuring on a new connection. `round_trip` is the round-trip time of a request that the engine answers
  // without delay.
  void connected(Clock::duration round_trip);
  void sent(uint64_t sequence, Clock::time_point now);
  // Records that the engine has acknowledged all frames up to `sequence`.
  void acknowledged(uint64_t sequence, Clock::time_point now);

  uint64_t frames() const { return frames_; }
  Clock::duration round_trip() const { return round_trip_; }

 private:
  struct Sent {
    uint64_t sequence;
    Clock::time_point at;
  };
  void update();

  std::deque<Sent> sent_;  // unacknowledged frames of this connection, in order
  Clock::duration round_trip_{};
  Clock::duration interval_{};              // smoothed time between acknowledgements; 0: unknown
  Clock::time_point last_acknowledgement_;  // time of the last one on this connection
  uint64_t frames_ = kBase;
};

}  // namespace tt::client
