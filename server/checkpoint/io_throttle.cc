#include "server/checkpoint/io_throttle.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration thread_time() {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Clock ticks in which the host's cores had nothing to run, summed over all cores.
std::optional<uint64_t> idle_ticks() {
  std::FILE* file = std::fopen("/proc/stat", "re");
  if (file == nullptr) return std::nullopt;
  unsigned long long idle = 0, waiting = 0;
  const int found = std::fscanf(file, "cpu %*u %*u %*u %llu %llu", &idle, &waiting);
  std::fclose(file);
  if (found != 2) return std::nullopt;
  return idle + waiting;
}

}  // namespace

std::optional<double> IdleCores::sample() {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> since = now - sampled_;
  if (since < kInterval) return std::nullopt;
  const std::optional<uint64_t> ticks = idle_ticks();
  if (!ticks) return std::nullopt;
  const bool is_first = sampled_ == Clock::time_point{};
  const uint64_t before = std::exchange(ticks_, *ticks);
  sampled_ = now;
  if (is_first || *ticks < before) return std::nullopt;
  return static_cast<double>(*ticks - before) / static_cast<double>(sysconf(_SC_CLK_TCK)) / since.count();
}

IoThrottle::Duration IoThrottle::next_pause() {
  if (const std::optional<double> idle = idle_cores_.sample()) shares_core_ = *idle < 1;
  const Clock::time_point now = Clock::now();
  const Duration used = thread_time();
  if (resumed_) owed_ += std::max(now - *resumed_, shares_core_ ? (kShare - 1) * (used - processor_time_) : Duration{});
  const Duration pause = std::min<Duration>(owed_, kMaxPause);
  owed_ -= pause;
  resumed_ = now + pause;
  processor_time_ = used;
  return pause;
}

}  // namespace tt::server
