// CudaStream and CudaEvent: engine/stream.h over the runtime; StreamPool: a device's streams, lent to sessions.
#pragma once

#include <mutex>
#include <string_view>
#include <vector>

#include "engine/stream.h"
#include "kernels/cuda/runtime.h"

namespace tt::cuda {

// Makes `device` the calling thread's; cheap where it is already.
void make_current(Device device);

class CudaEvent final : public Event {
 public:
  // Recorded in `stream`, now; keeps the time where it is `timed`.
  CudaEvent(Device device, StreamHandle stream, bool timed = false);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  bool done() const override;
  void synchronize() override;
  double elapsed_ms(const Event& since) const override;
  EventHandle handle() const { return handle_; }

 private:
  Device device_;
  EventHandle handle_;
};

class StreamPool;

class CudaStream final : public Stream {
 public:
  // Lent by `pool`, to which it goes back; of its own where that is null.
  CudaStream(Device device, StreamPool* pool, StreamHandle handle) : device_(device), pool_(pool), handle_(handle) {}
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Device device() const override { return device_; }
  uintptr_t id() const override { return reinterpret_cast<uintptr_t>(handle_); }
  std::unique_ptr<Event> record() override;
  std::unique_ptr<Event> record_timed() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void copy(void* to, const void* from, size_t bytes) override;
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  StreamHandle handle() const { return handle_; }

 private:
  Device device_;
  void check_may_wait(std::string_view what) const;  // throws while a graph is captured

  StreamPool* pool_;
  StreamHandle handle_;
  bool capturing_ = false;
};

// At most kStreams exist; further leases share the least used. Memory that was freed in one stream is used again in it
// alone, so streams are few and live as long as the device. Thread-safe.
class StreamPool {
 public:
  static constexpr size_t kStreams = 32;
  explicit StreamPool(Device device) : device_(device) {}
  std::unique_ptr<CudaStream> lease();
  void give_back(StreamHandle handle);

 private:
  struct Lent {
    StreamHandle handle;
    int users;
  };
  Device device_;
  std::mutex mutex_;
  std::vector<Lent> streams_;
};

}  // namespace tt::cuda
