// TestStream, TestEvents: streams whose progress is controlled by a test.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "engine/device/stream.h"
#include "engine/device/stream_events.h"
#include "engine/schema/error.h"

namespace tt {

class TestStream final : public Stream {
 public:
  explicit TestStream(uintptr_t id, Device device = {DeviceType::kCUDA, 0}) : id_(id), device_(device) {}
  Device device() const override { return device_; }
  uintptr_t id() const override { return id_; }
  std::unique_ptr<Event> record() override { fail(ErrorKind::kNotImplemented, "record() is not expected"); }
  void wait(const Event&) override {}
  void synchronize() override { ++synchronized; }
  void copy(void*, const void*, size_t) override {}
  void zero(void* p, size_t bytes) override { std::memset(p, 0, bytes); }
  int synchronized = 0;

 private:
  uintptr_t id_;
  Device device_;
};

// Events are numbered per stream and complete when the stream has reached their number.
class TestEvents final : public StreamEvents {
 public:
  struct State {
    std::map<uintptr_t, int> recorded;
    std::map<uintptr_t, int> reached;
    std::set<uintptr_t> capturing;  // streams without events
    bool reach_when_asked = false;  // so that polling makes progress
    bool lost = false;
    void finish(uintptr_t stream) { reached[stream] = recorded[stream]; }
  };
  explicit TestEvents(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::unique_ptr<Event> record(const StreamId& stream) override {
    if (state_->lost) fail(ErrorKind::kRuntime, "the device is lost");
    if (state_->capturing.contains(stream.id)) return nullptr;
    return std::make_unique<Numbered>(*state_, stream.id, ++state_->recorded[stream.id]);
  }

 private:
  class Numbered final : public Event {
   public:
    Numbered(State& state, uintptr_t stream, int number) : state_(state), stream_(stream), number_(number) {}
    bool done() const override {
      if (state_.lost) fail(ErrorKind::kRuntime, "the device is lost");
      if (state_.reached[stream_] >= number_) return true;
      if (state_.reach_when_asked) ++state_.reached[stream_];
      return false;
    }
    void synchronize() override {}

   private:
    State& state_;
    uintptr_t stream_;
    int number_;
  };
  std::shared_ptr<State> state_;
};

}  // namespace tt
