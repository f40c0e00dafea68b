// wait_until: waits until another thread makes a condition true. Returns whether it did.
#pragma once

#include <chrono>
#include <thread>

namespace tt::server::testing {

inline constexpr std::chrono::milliseconds kTimeout{20'000};

template <typename Condition>
bool wait_until(Condition condition, std::chrono::milliseconds timeout = kTimeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace tt::server::testing
