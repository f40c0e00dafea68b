// UploadQueue: sends uploads in the background, the oldest first, so that their callers do not wait for the network.
//
// Keeps a copy of the bytes until the engine has received them or the upload has failed. Threads are started when
// uploads wait for one, and end with the queue. Owned by a Link. Thread-safe.
#pragma once

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

  UploadQueue(BackgroundUploads limits, Send send) : limits_(limits), send_(std::move(send)) {}

  // Copies and queues an upload. Returns false, without an effect, if the copies would exceed the limit.
  bool try_add(uint64_t transfer, Device device, absl::Span<const char> bytes);
  // Drops the uploads that have not begun, and joins the threads. Call it after the link has ended and before the
  // destructor.
  void stop();
  // Number of bytes that are queued or being sent.
  size_t bytes() const;

 private:
  struct Upload {
    uint64_t transfer;
    Device device;
    std::unique_ptr<char[]> bytes;
    size_t size;
  };
  bool has_thread_for_one_more() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool may_begin() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run();

  const BackgroundUploads limits_;
  const Send send_;
  mutable Mutex mutex_;
  CondVar added_;
  std::deque<Upload> uploads_ ABSL_GUARDED_BY(mutex_);  // not begun
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;            // size of all copies
  size_t sending_ ABSL_GUARDED_BY(mutex_) = 0;          // size of the uploads that have begun
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;                // threads that wait for an upload
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::client
