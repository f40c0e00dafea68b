// WindowCompiler: compiles the windows of all sessions of an engine, on one thread of its own.
//
// The thread begins with the first window. The queue is bounded, for the engine and for each session. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "engine/session/window.h"

namespace tt {

class WindowCompiler {
 public:
  static constexpr size_t kMaxWaiting = 64;  // of all sessions

  // `at_once`: for tests; runs of calls are compiled at their first occurrence, and their session waits (windows.h).
  explicit WindowCompiler(bool at_once = false) : at_once_(at_once) {}
  // Waits for the window that is being compiled; drops the others.
  ~WindowCompiler();
  WindowCompiler(const WindowCompiler&) = delete;
  WindowCompiler& operator=(const WindowCompiler&) = delete;

  bool at_once() const { return at_once_; }
  // Returns false if too many windows are waiting.
  bool add(std::shared_ptr<const Program> window, std::shared_ptr<WindowVersion> version);
  // Waits until nothing is waiting or being compiled.
  void wait();

 private:
  struct Task {
    std::shared_ptr<const Program> window;
    std::shared_ptr<WindowVersion> version;
  };
  void run();

  const bool at_once_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_compiling_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

// As the environment's TELETENSOR_WINDOWS requires: null if it is "0"; if it is "test", windows are compiled at once.
std::shared_ptr<WindowCompiler> make_window_compiler();

}  // namespace tt
