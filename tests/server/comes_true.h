// comes_true: waits until another thread makes a condition true.
#pragma once

#include <chrono>
#include <thread>

namespace tt::server::testing {

inline constexpr std::chrono::milliseconds kTimeout{20'000};

template <typename Condition>
bool comes_true(Condition condition, std::chrono::milliseconds timeout = kTimeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace tt::server::testing
