#include "server/daemon/grace_period.h"

#include <unistd.h>

#include "spdlog/spdlog.h"

namespace tt::server {

GracePeriod::GracePeriod(std::chrono::milliseconds grace, std::function<void()> remove_files)
    : thread_([this, grace, remove_files] {
        MutexLock lock(mutex_);
        if (over_.wait_for(mutex_, grace, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; })) return;
        spdlog::warn("work was still running at the end of the grace period; exiting without waiting for it");
        remove_files();
        _exit(0);
      }) {}

GracePeriod::~GracePeriod() {
  {
    MutexLock lock(mutex_);
    done_ = true;
    over_.notify_all();
  }
  thread_.join();
}

}  // namespace tt::server
