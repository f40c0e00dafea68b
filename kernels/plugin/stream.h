// LibraryStream and LibraryEvent: implement engine/device/stream.h with a DeviceLibrary. LibraryStreams: leases a
// device's streams to sessions.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/device/stream.h"
#include "engine/device/stream_events.h"
#include "kernels/plugin/library.h"

namespace tt::plugin {

class LibraryEvent final : public Event {
 public:
  // Records the event in the library's stream.
  LibraryEvent(DeviceLibrary& library, int device, void* stream);
  ~LibraryEvent() override;
  LibraryEvent(const LibraryEvent&) = delete;
  LibraryEvent& operator=(const LibraryEvent&) = delete;
  bool done() const override;
  void synchronize() override;
  double elapsed_ms(const Event& since) const override;
  void* handle() const { return handle_; }
  const DeviceLibrary& library() const { return library_; }

 private:
  DeviceLibrary& library_;
  const int device_;
  void* handle_ = nullptr;
};

class LibraryStreams;

class LibraryStream final : public Stream {
 public:
  // The stream is leased from `streams`. The destructor returns it.
  LibraryStream(LibraryStreams& streams, void* handle) : streams_(streams), handle_(handle) {}
  ~LibraryStream() override;
  LibraryStream(const LibraryStream&) = delete;
  LibraryStream& operator=(const LibraryStream&) = delete;

  Device device() const override;
  uintptr_t id() const override { return reinterpret_cast<uintptr_t>(handle_); }
  std::unique_ptr<Event> record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  // Waits for copies from and to the host.
  void copy(void* to, const void* from, size_t bytes) override;
  void zero(void* p, size_t bytes) override;
  // copy() without waiting: memory of the host must exist until synchronize().
  void enqueue_copy(void* to, const void* from, size_t bytes);
  void* handle() const { return handle_; }

 private:
  LibraryStreams& streams_;
  void* const handle_;
};

// Creates at most kStreams streams, which live as long as the device. Further leases share the stream with the fewest
// leases. Thread-safe.
class LibraryStreams {
 public:
  static constexpr size_t kStreams = 32;
  LibraryStreams(DeviceLibrary& library, Device device) : library_(library), device_(device) {}
  std::unique_ptr<LibraryStream> lease();
  void release(void* handle);
  DeviceLibrary& library() const { return library_; }
  Device device() const { return device_; }

 private:
  struct Leased {
    void* handle;
    int users;
  };
  DeviceLibrary& library_;
  const Device device_;
  Mutex mutex_;
  std::vector<Leased> streams_ ABSL_GUARDED_BY(mutex_);
};

// Records events for a device's pool.
class LibraryStreamEvents final : public StreamEvents {
 public:
  explicit LibraryStreamEvents(DeviceLibrary& library) : library_(library) {}
  std::unique_ptr<Event> record(const StreamId& stream) override;

 private:
  DeviceLibrary& library_;
};

}  // namespace tt::plugin
