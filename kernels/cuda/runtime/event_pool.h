// EventPool: reusable events for a device's memory pool. Creating an event takes longer than recording one.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/device/stream_events.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

// Not thread-safe: the pool and its events are used under the memory pool's lock. Must outlive its events.
class EventPool final : public StreamEvents {
 public:
  EventPool() = default;
  ~EventPool() override;
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  std::unique_ptr<Event> record(const StreamId& stream) override;

 private:
  class PooledEvent;
  using Idle = std::vector<EventHandle>;
  std::map<int, Idle> idle_;  // by device
};

}  // namespace tt::cuda
