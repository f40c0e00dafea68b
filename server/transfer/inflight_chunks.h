// InflightChunks: the chunks of a lane that a device is reading or writing.
#pragma once

#include <deque>
#include <memory>

#include "engine/device/stream.h"
#include "proto/shared_ring.h"

namespace tt::server {

// Belongs to one transfer and its thread. The chunks are consecutive in the lane.
class InflightChunks {
 public:
  explicit InflightChunks(shared_ring::LaneEnd& end) : end_(end), next_(end.passed()) {}
  // Waits until nothing reads or writes the chunks.
  ~InflightChunks() {
    for (const Copy& copy : copies_) {
      try {
        copy.event->synchronize();
      } catch (const Error&) {  // a lost device no longer reads or writes
      }
    }
  }
  InflightChunks(const InflightChunks&) = delete;
  InflightChunks& operator=(const InflightChunks&) = delete;

  size_t size() const { return copies_.size(); }
  // Returns the number of the first chunk that is not in flight.
  uint32_t next() const { return next_; }
  // Adds the next `chunks`, which the device has started to copy; `event` passes when the copy is complete.
  void add(uint32_t chunks, std::shared_ptr<Event> event) {
    copies_.push_back({chunks, std::move(event)});
    next_ += chunks;
  }
  // Passes completed chunks to the client. Throws Error if the device failed.
  void pass_completed() {
    while (size() != 0 && copies_.front().event->done()) pass_first();
  }
  // Waits for the first copy and passes its chunks. Requires size() > 0.
  void await_first() {
    copies_.front().event->synchronize();
    pass_first();
  }

 private:
  struct Copy {
    uint32_t chunks;
    std::shared_ptr<Event> event;
  };
  void pass_first() {
    end_.pass(copies_.front().chunks);
    copies_.pop_front();
  }

  shared_ring::LaneEnd& end_;
  uint32_t next_;
  std::deque<Copy> copies_;
};

}  // namespace tt::server
