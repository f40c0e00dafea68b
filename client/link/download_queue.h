// DownloadQueue: receives values in the background, the oldest request first, so that their callers do not wait for the
// network.
//
// Threads are started when downloads wait for one, and end with the queue. Owned by a Link. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "base/mutex.h"

namespace tt::client {

// A download's bytes, shared by the queue and the caller. If the caller drops its reference, a download that has not
// begun is skipped. Thread-safe.
class BackgroundDownload {
 public:
  BackgroundDownload(uint64_t handle, size_t size) : handle_(handle), size_(size) {}

  bool done() const;
  // Waits at most `timeout` for the end; returns done().
  bool wait_for(std::chrono::milliseconds timeout) const;
  // The received bytes, which the caller may change. Requires done(). Throws the error if the download failed.
  absl::Span<char> bytes() const;

 private:
  friend class DownloadQueue;
  const uint64_t handle_;
  const size_t size_;
  mutable Mutex mutex_;
  mutable CondVar ended_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<char[]> bytes_ ABSL_GUARDED_BY(mutex_);  // allocated when the download begins
};

class DownloadQueue {
 public:
  // Receives a tensor's bytes. Called by several threads at once. Throws if the download fails for good, and soon after
  // the link has ended.
  using Receive = std::function<void(uint64_t handle, absl::Span<char> into)>;

  explicit DownloadQueue(Receive receive) : receive_(std::move(receive)) {}

  // Begins a download of `size` bytes. Throws Error (RuntimeError) if the system has no thread for it.
  std::shared_ptr<BackgroundDownload> add(uint64_t handle, size_t size);
  // Ends the downloads with errors, and joins the threads. Call it after the link has ended and before the
  // destructor.
  void stop();

 private:
  static constexpr size_t kMaxThreads = 4;
  void run();
  void receive(BackgroundDownload& download);

  const Receive receive_;
  Mutex mutex_;
  CondVar added_;
  std::deque<std::weak_ptr<BackgroundDownload>> downloads_ ABSL_GUARDED_BY(mutex_);  // not begun
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;                                          // threads that wait for a download
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::client
