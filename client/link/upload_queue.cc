#include "client/link/upload_queue.h"

#include <cstring>
#include <utility>

namespace tt::client {

UploadQueue::~UploadQueue() = default;

bool UploadQueue::try_add(uint64_t transfer, Device device, absl::Span<const char> bytes) {
  {
    MutexLock lock(mutex_);
    if (stopping_ || bytes.size() > limits_.max_bytes - bytes_) return false;
    bytes_ += bytes.size();  // reserved while the bytes are copied without the mutex
  }
  Upload upload{transfer, device, std::make_unique_for_overwrite<char[]>(bytes.size()), bytes.size()};
  std::memcpy(upload.bytes.get(), bytes.data(), bytes.size());
  MutexLock lock(mutex_);
  uploads_.push_back(std::move(upload));
  if (idle_ > 0) {
    added_.notify_one();
  } else if (static_cast<int>(threads_.size()) < limits_.max_calls && !stopping_) {
    threads_.emplace_back([this] { run(); });
  }
  return true;
}

void UploadQueue::run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (uploads_.empty() && !stopping_) {
      ++idle_;
      added_.wait(mutex_);
      --idle_;
    }
    if (stopping_) return;
    Upload upload = std::move(uploads_.front());
    uploads_.pop_front();
    {
      MutexUnlock unlocked(mutex_);
      send_(upload.transfer, upload.device, {upload.bytes.get(), upload.size});
      upload.bytes.reset();
    }
    bytes_ -= upload.size;
  }
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
