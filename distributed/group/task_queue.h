// TaskQueue: runs tasks in order on a thread of its own, which starts with the first task.
#pragma once

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

  TaskQueue() = default;
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
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }

 private:
  void run() {
    MutexLock lock(mutex_);
    for (;;) {
      while (tasks_.empty() && !stopping_) changed_.wait(mutex_);
      if (tasks_.empty()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      MutexUnlock unlocked(mutex_);
      task();
      task = nullptr;  // releases what the task holds before the next one runs
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started under the mutex, joined by the destructor
};

}  // namespace tt::distributed
