#include "client/link/download_queue.h"

#include <system_error>
#include <utility>

#include "engine/schema/error.h"

namespace tt::client {

bool BackgroundDownload::done() const {
  MutexLock lock(mutex_);
  return done_;
}

bool BackgroundDownload::wait_for(std::chrono::milliseconds timeout) const {
  MutexLock lock(mutex_);
  if (timeout == std::chrono::milliseconds::max()) {
    while (!done_) ended_.wait(mutex_);
  } else if (!done_) {
    ended_.wait_for(mutex_, timeout);
  }
  return done_;
}

absl::Span<char> BackgroundDownload::bytes() const {
  MutexLock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return {bytes_.get(), size_};
}

std::shared_ptr<BackgroundDownload> DownloadQueue::add(uint64_t handle, size_t size) {
  auto download = std::make_shared<BackgroundDownload>(handle, size);
  MutexLock lock(mutex_);
  check(ErrorKind::kConnection, !stopping_, "[connection] the session is closed");
  if (downloads_.size() >= idle_ && threads_.size() < kMaxThreads) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {  // the existing threads receive the value later
      check(!threads_.empty(), "[download] the system has no thread for a download in the background");
    }
  }
  downloads_.push_back(download);
  if (idle_ > 0) added_.notify_one();
  return download;
}

void DownloadQueue::run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (downloads_.empty()) {
      if (stopping_) return;
      ++idle_;
      added_.wait(mutex_);
      --idle_;
    }
    std::shared_ptr<BackgroundDownload> download = downloads_.front().lock();
    downloads_.pop_front();
    if (!download) continue;
    MutexUnlock unlocked(mutex_);
    receive(*download);
    download.reset();
  }
}

void DownloadQueue::receive(BackgroundDownload& download) {
  std::unique_ptr<char[]> bytes;
  std::exception_ptr error;
  try {
    bytes = std::make_unique_for_overwrite<char[]>(download.size_);
    receive_(download.handle_, {bytes.get(), download.size_});
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  MutexLock lock(download.mutex_);
  download.bytes_ = std::move(bytes);
  download.error_ = std::move(error);
  download.done_ = true;
  download.ended_.notify_all();
}

void DownloadQueue::stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    added_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tt::client
