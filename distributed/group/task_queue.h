// TaskQueue: runs tasks in order on a thread of its own, which exists while there are tasks and for a while after.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace tt::distributed {

// Thread-safe. The destructor waits for the running task and all queued ones.
class TaskQueue {
 public:
  using Task = std::function<void()>;
  // How long the thread waits for a task before it ends, so that groups which are not in use hold no threads.
  static constexpr std::chrono::milliseconds kIdle{5'000};

  explicit TaskQueue(std::chrono::milliseconds idle = kIdle) : idle_(idle) {}
  ~TaskQueue() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // `task` must not throw. Throws std::system_error if the thread cannot be started.
  void add(Task task) {
    MutexLock lock(mutex_);
    if (!has_thread_) {
      if (thread_.joinable()) thread_.join();  // it has released the mutex for the last time
      thread_ = std::thread([this] { run(); });
      has_thread_ = true;
    }
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  bool has_thread() const {
    MutexLock lock(mutex_);
    return has_thread_;
  }

 private:
  void run() {
    MutexLock lock(mutex_);
    for (;;) {
      const auto end = std::chrono::steady_clock::now() + idle_;
      while (tasks_.empty() && !stopping_) {
        if (changed_.wait_until(mutex_, end) == std::cv_status::timeout) break;
      }
      if (tasks_.empty()) {
        has_thread_ = false;
        return;
      }
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      MutexUnlock unlocked(mutex_);
      task();
      task = nullptr;  // releases what the task holds before the next one runs
    }
  }

  const std::chrono::milliseconds idle_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_thread_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started under the mutex, joined there or by the destructor
};

}  // namespace tt::distributed
