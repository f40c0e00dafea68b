// EventPool: the events that a memory pool of a device waits for, used again and again: making one costs more than
// recording it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/device/stream_events.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

// Under the memory pool's lock, as its events are; outlives them.
class EventPool final : public StreamEvents {
 public:
  EventPool() = default;
  ~EventPool() override;
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  std::unique_ptr<Event> record(const StreamId& stream) override;

 private:
  class Lent;
  using Idle = std::vector<EventHandle>;
  std::map<int, Idle> idle_;  // by device
};

}  // namespace tt::cuda
