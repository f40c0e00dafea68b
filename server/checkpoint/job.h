// CheckpointJob: one task of a session's checkpoint threads, which an instruction waits for.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "distributed/group/work.h"
#include "engine/schema/error.h"
#include "server/checkpoint/io_throttle.h"

namespace tt::server {

// Shared by a session and the thread that runs it. Thread-safe.
class CheckpointJob {
 public:
  // Throws Error if the task fails. Must call check_cancelled() at least once per some megabytes.
  using Body = std::function<void(CheckpointJob&)>;

  // `is_background`: whether the task yields to the session's computation, until hurry().
  CheckpointJob(std::shared_ptr<SuspensionNotifier> notifier, bool is_background)
      : work_(std::make_shared<distributed::Work>(std::move(notifier))), is_background_(is_background) {}

  const std::shared_ptr<distributed::Work>& work() const { return work_; }

  // Runs the task on the calling thread and completes the work. Releases everything that `body` captured first.
  void run(Body body) {
    std::optional<Error> error;
    try {
      check_cancelled();
      body(*this);
    } catch (const Error& e) {
      error = e;
    } catch (const std::exception& e) {
      error = Error(ErrorKind::kRuntime, e.what());
    }
    body = nullptr;
    work_->finish(std::move(error));
  }

  // Makes the task end at its next check; it then has no effect.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void check_cancelled() const {
    check(!cancelled_.load(std::memory_order_relaxed), "the checkpoint operation was cancelled");
  }

  bool is_background() const { return is_background_; }
  // Whether the task must use little of the processors' and the disk's time now.
  bool yields() const { return is_background_ && !hurries_.load(std::memory_order_relaxed); }
  // Ends the pauses of a background task, because an instruction waits for it.
  void hurry() { hurries_.store(true, std::memory_order_relaxed); }
  // Called by the task, on its thread, between two pieces of work. Sleeps in a background task.
  void pause() {
    if (yields()) std::this_thread::sleep_for(pace_.next_pause());
  }

  // Bytes read or written so far, and in total.
  void set_total(uint64_t bytes) { total_.store(bytes, std::memory_order_relaxed); }
  void advance(uint64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  uint64_t total() const { return total_.load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<distributed::Work> work_;
  const bool is_background_;
  IoThrottle pace_;  // used by the task
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> hurries_{false};
  std::atomic<uint64_t> done_{0}, total_{0};
};

}  // namespace tt::server
