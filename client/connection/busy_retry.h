// BusyRetry: repeats a call that the engine refused because all places are taken, until the call's timeout.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace tt::client {

class BusyRetry {
 public:
  using Milliseconds = std::chrono::milliseconds;
  explicit BusyRetry(Milliseconds timeout) : end_(Clock::now() + timeout) {}

  // The engine marks what may succeed later by the end of the message of its UNAVAILABLE.
  static bool is_busy(bool is_unavailable, absl::string_view message) {
    return is_unavailable && absl::EndsWith(message, "try again later");
  }
  // The rest of the timeout, at least one millisecond.
  Milliseconds left() const { return std::max(std::chrono::ceil<Milliseconds>(end_ - Clock::now()), Milliseconds(1)); }
  // Waits before the next attempt: a random part of a time that doubles. Returns false if the timeout would pass.
  bool pause() {
    thread_local std::minstd_rand random(std::random_device{}());
    const Milliseconds wait(std::uniform_int_distribution<int64_t>(longest_.count() / 2, longest_.count())(random));
    if (wait >= end_ - Clock::now()) return false;
    std::this_thread::sleep_for(wait);
    longest_ = std::min(2 * longest_, Milliseconds(400));
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end_;
  Milliseconds longest_{20};
};

}  // namespace tt::client
