// Streams and events of the example device. A stream is a thread that executes a queue of functions in their order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace example {

// A point in a stream. Thread-safe. The stream keeps a reference until it has reached the point.
class Event {
 public:
  void complete() {
    const std::lock_guard<std::mutex> lock(mutex_);
    at_ = std::chrono::steady_clock::now();
    done_ = true;
    changed_.notify_all();
  }
  bool is_done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return done_;
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
  }
  // Requires that both events are done.
  double milliseconds_since(const Event& earlier) const {
    return std::chrono::duration<double, std::milli>(at_ - earlier.at_).count();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::chrono::steady_clock::time_point at_;
};

class Stream {
 public:
  Stream() : thread_([this] { run(); }) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  void add(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }
  void synchronize() {
    auto reached = std::make_shared<Event>();
    add([reached] { reached->complete(); });
    reached->wait();
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace example
