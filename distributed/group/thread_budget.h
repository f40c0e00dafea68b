// ThreadBudget: the number of threads that a session's groups and stores may use. ThreadShare: a part of it.
//
// The shares are of the threads that a group may have at a time, also while it has fewer. Owned by the session, and by
// the shares. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/schema/error.h"

namespace tt::distributed {

class ThreadBudget {
 public:
  explicit ThreadBudget(uint64_t limit) : limit_(limit) {}  // 0: no limit

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

  // Throws Error (RuntimeError) if the limit has no room. `what` names the owner of the threads in the error.
  void take(uint64_t threads, std::string_view what) {
    const uint64_t used = used_.fetch_add(threads, std::memory_order_relaxed);
    if (limit_ == 0 || used + threads <= limit_) return;
    give_back(threads);
    fail(ErrorKind::kRuntime, "expected at most ", limit_,
         " threads for a session's groups and stores (teletensord --session-group-threads), which use ", used, "; ",
         message_part(what), " requires ", threads, threads == 1 ? " more" : " more threads");
  }
  void give_back(uint64_t threads) { used_.fetch_sub(threads, std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// Threads that are given back by the destructor.
class ThreadShare {
 public:
  ThreadShare() = default;
  // Without a budget, nothing is taken. Throws Error as ThreadBudget::take() does.
  ThreadShare(std::shared_ptr<ThreadBudget> budget, uint64_t threads, std::string_view what) : threads_(threads) {
    if (budget) budget->take(threads, what);
    budget_ = std::move(budget);
  }
  ThreadShare(ThreadShare&& other) noexcept = default;
  ThreadShare& operator=(ThreadShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(threads_, other.threads_);
    return *this;
  }
  ~ThreadShare() {
    if (budget_) budget_->give_back(threads_);
  }

 private:
  std::shared_ptr<ThreadBudget> budget_;
  uint64_t threads_ = 0;
};

}  // namespace tt::distributed
