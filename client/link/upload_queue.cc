#include "client/link/upload_queue.h"

#include <cstring>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace tt::client {

bool UploadQueue::try_add(uint64_t transfer, Device device, absl::Span<const char> bytes) {
  {
    MutexLock lock(mutex_);
    if (stopping_ || bytes.size() > limits_.max_bytes - bytes_) return false;
    bytes_ += bytes.size();  // reserved while the bytes are copied without the mutex
  }
  absl::Cleanup give_back = [&] {
    MutexLock lock(mutex_);
    bytes_ -= bytes.size();
  };
  Upload upload{transfer, device, std::make_unique_for_overwrite<char[]>(bytes.size()), bytes.size()};
  std::memcpy(upload.bytes.get(), bytes.data(), bytes.size());
  {
    MutexLock lock(mutex_);
    if (stopping_ || !has_thread_for_one_more()) return false;
    uploads_.push_back(std::move(upload));
    if (idle_ > 0) added_.notify_one();
  }
  std::move(give_back).Cancel();
  return true;
}

// Starts a thread if no other one is idle. Returns false if there is none at all.
bool UploadQueue::has_thread_for_one_more() {
  if (uploads_.size() >= static_cast<size_t>(idle_) && static_cast<int>(threads_.size()) < limits_.max_calls) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      // The system has no more threads; those that exist send the upload later.
    }
  }
  return !threads_.empty();
}

void UploadQueue::run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopping_ && !may_begin()) {
      ++idle_;
      added_.wait(mutex_);
      --idle_;
    }
    if (stopping_) return;
    Upload upload = std::move(uploads_.front());
    uploads_.pop_front();
    sending_ += upload.size;
    {
      MutexUnlock unlocked(mutex_);
      send_(upload.transfer, upload.device, {upload.bytes.get(), upload.size});
      upload.bytes.reset();
    }
    bytes_ -= upload.size;
    sending_ -= upload.size;
    if (!uploads_.empty()) added_.notify_all();
  }
}

// Uploads share the link: with many large ones in progress, the one that the engine needs first would arrive last.
bool UploadQueue::may_begin() const {
  constexpr size_t kMaxSending = size_t{32} << 20;
  return !uploads_.empty() && (sending_ == 0 || sending_ + uploads_.front().size <= kMaxSending);
}

void UploadQueue::stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    uploads_.clear();
    threads.swap(threads_);
    added_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

size_t UploadQueue::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace tt::client
