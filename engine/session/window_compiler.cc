#include "engine/session/window_compiler.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

namespace tt {
namespace {

constexpr int kNice = 10;  // of the thread: calls that wait for the processors are more urgent

}  // namespace

WindowCompiler::~WindowCompiler() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    ends_ = true;
    thread = std::move(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
}

bool WindowCompiler::add(std::shared_ptr<const Program> window, std::shared_ptr<WindowVersion> version) {
  {
    MutexLock lock(mutex_);
    if (ends_ || waiting_.size() >= kMaxWaiting) return false;
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread(&WindowCompiler::run, this);
      } catch (const std::system_error&) {
        return false;  // the process may have no more threads
      }
    }
    waiting_.push_back({std::move(window), std::move(version)});
  }
  changed_.notify_all();
  return true;
}

void WindowCompiler::wait() {
  MutexLock lock(mutex_);
  while (is_compiling_ || !waiting_.empty()) changed_.wait(mutex_);
}

void WindowCompiler::run() {
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice));
  MutexLock lock(mutex_);
  while (!ends_) {
    if (waiting_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    const Task task = std::move(waiting_.front());
    waiting_.pop_front();
    is_compiling_ = true;
    {
      MutexUnlock unlocked(mutex_);
      compile_window(*task.window, task.version.get());
    }
    is_compiling_ = false;
    changed_.notify_all();
  }
}

std::shared_ptr<WindowCompiler> make_window_compiler() {
  const char* const setting = std::getenv("TELETENSOR_WINDOWS");
  const std::string_view mode = setting == nullptr ? "" : setting;
  return mode == "0" ? nullptr : std::make_shared<WindowCompiler>(/*at_once=*/mode == "test");
}

}  // namespace tt
