#include "client/link/upload_queue.h"

#include <algorithm>
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
    if (stopping_) return false;
    uploads_.push_back(std::move(upload));
    wake_thread();
    if (threads_.empty()) {  // the system has none
      uploads_.pop_back();
      return false;
    }
  }
  std::move(give_back).Cancel();
  return true;
}

// Wakes or starts a thread if an upload may begin. Each thread that begins one wakes the next.
void UploadQueue::wake_thread() {
  if (!may_begin()) return;
  if (idle_ > 0) {
    added_.notify_one();
  } else if (static_cast<int>(threads_.size()) < limits_.max_calls) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      // The system has no more threads; those that exist send the upload later.
    }
  }
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
    const size_t in_flight = sending_;
    const Clock::time_point begin = Clock::now();
    wake_thread();
    {
      MutexUnlock unlocked(mutex_);
      send_(upload.transfer, upload.device, {upload.bytes.get(), upload.size});
      upload.bytes.reset();
    }
    bytes_ -= upload.size;
    sending_ -= upload.size;
    update_max_sending(in_flight, Clock::now() - begin);
  }
}

bool UploadQueue::may_begin() const {
  return !uploads_.empty() && (sending_ == 0 || sending_ + uploads_.front().size <= max_sending_);
}

// `in_flight` bytes in `time` are the link's rate. An upload that takes about a round trip does not show that the link
// has no room, so it only raises the limit; one that takes longer only lowers it.
void UploadQueue::update_max_sending(size_t in_flight, Clock::duration time) {
  if (round_trip_ == Clock::duration()) return;
  const double round_trips = std::chrono::duration<double>(time) / std::chrono::duration<double>(round_trip_);
  const auto limit = static_cast<size_t>(2 * static_cast<double>(in_flight) / std::max(round_trips, 1.0));
  max_sending_ = round_trips <= 2 ? std::max(max_sending_, limit)
                                  : std::max(limits_.min_sending, std::min(max_sending_, limit));
}

void UploadQueue::set_round_trip(Clock::duration round_trip) {
  MutexLock lock(mutex_);
  round_trip_ = round_trip;
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

size_t UploadQueue::max_sending() const {
  MutexLock lock(mutex_);
  return max_sending_;
}

}  // namespace tt::client
