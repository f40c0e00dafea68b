// UploadQueue: sends uploads in the background, the oldest first, so that their callers do not wait for the network.
//
// Uploads share the link: with many large ones in progress, the one that the engine needs first would arrive last. So
// their total size is limited to twice what the link transports in a round trip, and to `min_sending` if that is more.
//
// Keeps a copy of the bytes until the engine has received them or the upload has failed. Threads are started when
// uploads wait for one, and end with the queue. Owned by a Link. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "base/mutex.h"
#include "client/transport/transport.h"
#include "engine/schema/device.h"

namespace tt::client {

class UploadQueue {
 public:
  // Uploads bytes; returns when the engine has received them, or when the upload has failed for good. Called by several
  // threads at once. Must not throw, and must return soon after the link has ended.
  using Send = std::function<void(uint64_t transfer, Device device, absl::Span<const char> bytes)>;
  using Clock = std::chrono::steady_clock;

  UploadQueue(BackgroundUploads limits, Send send)
      : limits_(limits), send_(std::move(send)), max_sending_(limits.min_sending) {}

  // Copies and queues an upload. Returns false, without an effect, if the copies would exceed the limit.
  bool try_add(uint64_t transfer, Device device, absl::Span<const char> bytes);
  // Sets the link's round trip. 0, the initial value: unknown, and the limit is `min_sending`.
  void set_round_trip(Clock::duration round_trip);
  // Drops the uploads that have not begun, and joins the threads. Call it after the link has ended and before the
  // destructor.
  void stop();
  // Number of bytes that are queued or being sent.
  size_t bytes() const;
  // Maximum total size of the uploads in progress if there are several.
  size_t max_sending() const;

 private:
  struct Upload {
    uint64_t transfer;
    Device device;
    std::unique_ptr<char[]> bytes;
    size_t size;
  };
  void wake_thread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool may_begin() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void update_max_sending(size_t in_flight, Clock::duration time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run();

  const BackgroundUploads limits_;
  const Send send_;
  mutable Mutex mutex_;
  CondVar added_;
  std::deque<Upload> uploads_ ABSL_GUARDED_BY(mutex_);  // not begun
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;            // size of all copies
  size_t sending_ ABSL_GUARDED_BY(mutex_) = 0;          // size of the uploads that have begun
  size_t max_sending_ ABSL_GUARDED_BY(mutex_);
  Clock::duration round_trip_ ABSL_GUARDED_BY(mutex_){};
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;                // threads that wait for an upload
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::client
