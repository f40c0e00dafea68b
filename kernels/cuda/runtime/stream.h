// CudaStream and CudaEvent implement engine/device/stream.h with the runtime. StreamPool leases a device's streams to
// sessions.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "engine/device/stream.h"
#include "kernels/cuda/runtime/issuer.h"

namespace tt::cuda {

class CudaEvent final : public Event {
 public:
  // Records the event in the issuer's stream at once. Stores the time if `timed`.
  explicit CudaEvent(Issuer& issuer, bool timed = false);
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
  // A stream leased from `pool`, returned to it on destruction.
  CudaStream(StreamPool* pool, Issuer* issuer) : pool_(pool), issuer_(issuer) {}
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Device device() const override { return issuer_->device(); }
  uintptr_t id() const override { return reinterpret_cast<uintptr_t>(issuer_); }
  static Issuer& issuer_of(uintptr_t id) { return *reinterpret_cast<Issuer*>(id); }
  std::unique_ptr<Event> record() override;
  std::unique_ptr<Event> record_timed() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void copy(void* to, const void* from, size_t bytes) override;
  void zero(void* p, size_t bytes) override;
  void mark() override { issuer_->flush(); }
  ReplayCounts replays() const override { return issuer_->counts(); }
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void add(const Work& work) { issuer_->add(work); }
  StreamHandle handle() const { return issuer_->stream(); }

 private:
  void check_may_wait(std::string_view what) const;  // throws while a graph is captured
  void make_ready(std::string_view what);            // before any operation other than a launch

  StreamPool* pool_;
  Issuer* issuer_;
  bool capturing_ = false;
};

// Creates at most kStreams streams; further leases share the least used one. Memory freed in a stream is reused only in
// that stream, so streams are few and live as long as the device. Thread-safe.
class StreamPool {
 public:
  static constexpr size_t kStreams = 32;
  explicit StreamPool(Device device) : device_(device) {}
  std::unique_ptr<CudaStream> lease();
  void give_back(const Issuer* issuer);

 private:
  struct Lent {
    std::unique_ptr<Issuer> issuer;
    int users;
  };
  Device device_;
  Mutex mutex_;
  std::vector<Lent> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::cuda
