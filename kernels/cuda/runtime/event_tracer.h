// EventTracer: a DeviceTracer by CUDA events before and after each launch, for engines without CUPTI.
//
// It records the launches of GraphReplayer, which are kernels and copies and fills within a device, without their names
// and shapes. Their times include the gap before the GPU starts a launch, and the host's clock is known to a few
// microseconds.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/device/device_tracer.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

class EventTracer final : public DeviceTracer {
 public:
  static constexpr uint64_t kMaxLaunches = 1 << 16;  // per trace; each has two events

  EventTracer();
  ~EventTracer() override;
  uint32_t start(uint64_t max_activities) override;
  void begin_launches(uint32_t trace, uint32_t launch) noexcept override;
  void end_launches() noexcept override;
  DeviceTrace stop(uint32_t trace) override;
  uint64_t host_bytes() const override;

 private:
  friend class TimedLaunch;

  struct Launch {
    uint32_t launch;
    Device device;
    StreamHandle stream;
    EventHandle begin, end;
  };
  // A point in time in both clocks.
  struct Base {
    EventHandle event;
    uint64_t time;
  };
  struct Trace {
    uint64_t limit = 0;
    uint64_t dropped = 0;
    std::vector<Launch> launches;
    std::map<int, Base> bases;                 // by device
    std::map<StreamHandle, uint32_t> streams;  // numbers in the order of first use
  };

  // Whether the trace accepts another launch on the device, whose base it then has.
  bool prepare(uint32_t trace, Device device);
  void add(uint32_t trace, const Launch& launch);
  static DeviceActivity activity(Trace& trace, const Launch& launch);
  static void destroy(const Trace& trace);

  mutable Mutex mutex_;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint32_t, Trace> traces_ ABSL_GUARDED_BY(mutex_);
};

// While it exists, the calling thread issues one launch to the stream. Records events if the launch belongs to a trace
// of an EventTracer.
class TimedLaunch {
 public:
  TimedLaunch(Device device, StreamHandle stream);
  ~TimedLaunch();
  TimedLaunch(const TimedLaunch&) = delete;
  TimedLaunch& operator=(const TimedLaunch&) = delete;

 private:
  uint32_t trace_ = 0;  // 0: none
  EventTracer::Launch launch_{};
};

}  // namespace tt::cuda
