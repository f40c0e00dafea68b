#include "kernels/cuda/runtime/event_pool.h"

#include "kernels/cuda/runtime/stream.h"

namespace tt::cuda {

class EventPool::PooledEvent final : public Event {
 public:
  PooledEvent(EventHandle handle, Idle& idle) : handle_(handle), idle_(idle) {}
  ~PooledEvent() override { idle_.push_back(handle_); }
  bool done() const override { return runtime().done(handle_); }
  void synchronize() override { runtime().synchronize_event(handle_); }
  EventHandle handle() const { return handle_; }

 private:
  EventHandle handle_;
  Idle& idle_;
};

EventPool::~EventPool() {
  for (const auto& [device, events] : idle_) {
    for (EventHandle event : events) runtime().destroy_event(event);
  }
}

std::unique_ptr<Event> EventPool::record(const StreamId& stream) {
  GraphReplayer& replayer = CudaStream::replayer_of(stream.id);
  make_current(stream.device);
  if (runtime().is_capturing(replayer.stream())) return nullptr;
  replayer.flush();
  Idle& idle = idle_[stream.device.index];
  if (idle.empty()) idle.push_back(runtime().create_event(false));
  auto event = std::make_unique<PooledEvent>(idle.back(), idle);
  idle.pop_back();
  runtime().record(event->handle(), replayer.stream());
  return event;
}

}  // namespace tt::cuda
