// Work: one collective in progress. A session's instruction suspends on it; a thread of the group completes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "engine/program/suspension.h"
#include "engine/schema/error.h"

namespace tt::distributed {

// Shared by a session and a group. Thread-safe.
class Work final : public Suspension {
 public:
  explicit Work(std::shared_ptr<SuspensionNotifier> notifier) : notifier_(std::move(notifier)) {}

  bool ready() override { return done_.load(std::memory_order_acquire); }
  // finish() always notifies, so this only bounds how long a missed notification would cost.
  TimePoint deadline() override { return std::chrono::steady_clock::now() + std::chrono::hours(1); }
  // Completes the work, with an error if it failed. Called once.
  void finish(std::optional<Error> error) {
    error_ = std::move(error);
    done_.store(true, std::memory_order_release);
    notifier_->notify();
  }
  // Sets the work's number, such as the sender's rank. Called at most once, before finish().
  void set_value(int64_t value) { value_ = value; }
  // Require ready(). The number is 0 if none was set.
  int64_t value() const { return value_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  const std::shared_ptr<SuspensionNotifier> notifier_;
  std::optional<Error> error_;  // written before done_
  int64_t value_ = 0;           // written before done_
  std::atomic<bool> done_{false};
};

}  // namespace tt::distributed
