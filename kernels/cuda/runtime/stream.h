// CudaStream and CudaEvent: implement engine/device/stream.h with Runtime. StreamPool: leases a device's streams to
// sessions.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "engine/device/stream.h"
#include "kernels/cuda/runtime/graph_replayer.h"

namespace tt::cuda {

class CudaEvent final : public Event {
 public:
  // Records the event in the replayer's stream. elapsed_ms() requires `timed`.
  explicit CudaEvent(GraphReplayer& replayer, bool timed = false);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  bool done() const override;
  void synchronize() override;
  double elapsed_ms(const Event& since) const override;
  EventHandle handle() const { return handle_; }

 private:
  EventHandle handle_;
};

class StreamPool;

class CudaStream final : public Stream {
 public:
  // The stream is leased from `pool`. The destructor returns it to the pool.
  CudaStream(StreamPool* pool, GraphReplayer* replayer) : pool_(pool), replayer_(replayer) {}
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Device device() const override { return replayer_->device(); }
  uintptr_t id() const override { return reinterpret_cast<uintptr_t>(replayer_); }
  static GraphReplayer& replayer_of(uintptr_t id) { return *reinterpret_cast<GraphReplayer*>(id); }
  std::unique_ptr<Event> record() override;
  std::unique_ptr<Event> record_timed() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void copy(void* to, const void* from, size_t bytes) override;
  void zero(void* p, size_t bytes) override;
  void mark() override { replayer_->flush(); }
  ReplayCounts replays() const override { return replayer_->counts(); }
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void add(const KernelLaunch& launch) { replayer_->add(launch); }
  StreamHandle handle() const { return replayer_->stream(); }

 private:
  void check_not_capturing(std::string_view what) const;  // throws while a graph is captured
  void make_ready(std::string_view what);                 // must be called before an operation that is not a launch

  StreamPool* pool_;
  GraphReplayer* replayer_;
  bool capturing_ = false;
};

// Creates at most kStreams streams. Further leases share the stream with the fewest leases. Memory freed in a stream is
// reused only in that stream, so streams are few and live as long as the device. Thread-safe.
class StreamPool {
 public:
  static constexpr size_t kStreams = 32;
  explicit StreamPool(Device device) : device_(device) {}
  std::unique_ptr<CudaStream> lease();
  void release(const GraphReplayer* replayer);

 private:
  struct LeasedStream {
    std::unique_ptr<GraphReplayer> replayer;
    int users;
  };
  Device device_;
  Mutex mutex_;
  std::vector<LeasedStream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::cuda
