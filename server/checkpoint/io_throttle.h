// IoThrottle: how long a thread sleeps between pieces of work, so that kernels on the same cores are not delayed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tt::server {

// Number of cores of the host that had nothing to run between two calls.
class IdleCores {
 public:
  // None if less than kInterval has passed since the last result, or if the system does not report it.
  std::optional<double> sample();

 private:
  static constexpr std::chrono::milliseconds kInterval{200};
  std::chrono::steady_clock::time_point sampled_{};
  uint64_t ticks_ = 0;
};

// Used by one thread.
class IoThrottle {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // The time to sleep after the work since the last call. While at least one core is idle, this is the time that the
  // work took, so that it takes at most half of the disk's rate. Otherwise the thread takes at most one part in kShare
  // of one core's time: kernels that use all cores wait for the one that they share with it.
  Duration next_pause();

 private:
  static constexpr int kShare = 12;
  // Longer pauses are divided, because a task must notice soon that it is cancelled or waited for.
  static constexpr std::chrono::milliseconds kMaxPause{50};

  IdleCores idle_cores_;
  bool shares_core_ = true;
  std::optional<std::chrono::steady_clock::time_point> resumed_;  // the end of the last pause
  Duration processor_time_{};                                     // of the thread, at that time
  Duration owed_{};                                               // pauses that were divided
};

}  // namespace tt::server
