// InflightChunks: the chunks of a lane that a device is reading or writing by itself.
#pragma once

#include <deque>
#include <memory>

#include "engine/device/stream.h"
#include "proto/shared_ring.h"

namespace tt::server {

// Of one transfer, used by its thread. The chunks are the lane's next ones, in order.
class InflightChunks {
 public:
  explicit InflightChunks(shared_ring::End& end) : end_(end), next_(end.passed()) {}
  // Waits: nothing reads or writes the chunks any more.
  ~InflightChunks() {
    for (const Flight& flight : under_way_) {
      try {
        flight.landed->synchronize();
      } catch (const Error&) {  // a lost device reads and writes no more
      }
    }
  }
  InflightChunks(const InflightChunks&) = delete;
  InflightChunks& operator=(const InflightChunks&) = delete;

  size_t size() const { return under_way_.size(); }
  // The first chunk that is not under way.
  uint32_t next() const { return next_; }
  // The device has begun with the next `chunks`, and is through with them at `landed`.
  void add(uint32_t chunks, std::shared_ptr<Event> landed) {
    under_way_.push_back({chunks, std::move(landed)});
    next_ += chunks;
  }
  // Passes what the device is through with to the client. Throws Error where the device failed.
  void land() {
    while (size() != 0 && under_way_.front().landed->done()) pass_first();
  }
  // The same, after waiting for the first. Requires one.
  void await_first() {
    under_way_.front().landed->synchronize();
    pass_first();
  }

 private:
  struct Flight {
    uint32_t chunks;
    std::shared_ptr<Event> landed;
  };
  void pass_first() {
    end_.pass(under_way_.front().chunks);
    under_way_.pop_front();
  }

  shared_ring::End& end_;
  uint32_t next_;
  std::deque<Flight> under_way_;
};

}  // namespace tt::server
