// FrameLog: when a link's frames were sent and acknowledged. For a profiler; does nothing until start().
//
// Owned by a Link and guarded by its mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tt::client {

// Times are nanoseconds of CLOCK_MONOTONIC.
struct SentFrame {
  uint64_t sequence = 0;
  uint64_t sent = 0;          // when the write to the transport began
  uint64_t written = 0;       // when it returned
  uint64_t acknowledged = 0;  // when a thread had read the reply; 0: not yet
};

class FrameLog {
 public:
  // Logs the next `max_frames` frames, instead of those of an earlier start().
  void start(size_t max_frames) {
    frames_.clear();
    max_frames_ = max_frames;
    unacknowledged_ = 0;
    active_ = true;
  }
  // Returns the frames since start(), and logs no more.
  std::vector<SentFrame> stop() {
    active_ = false;
    return std::exchange(frames_, {});
  }
  bool active() const { return active_; }
  // A frame that is sent again, after the stream broke, is logged again.
  void add(const SentFrame& frame) {
    if (frames_.size() < max_frames_) frames_.push_back(frame);
  }
  void acknowledge(uint64_t through, uint64_t time) {
    for (; unacknowledged_ < frames_.size() && frames_[unacknowledged_].sequence <= through; ++unacknowledged_) {
      frames_[unacknowledged_].acknowledged = time;
    }
  }

 private:
  bool active_ = false;
  size_t max_frames_ = 0;
  size_t unacknowledged_ = 0;  // index of the first frame without an acknowledgement
  std::vector<SentFrame> frames_;
};

}  // namespace tt::client
