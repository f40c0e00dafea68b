// ThreadTuner: chooses, by measured times, whether a model's run uses one thread or several.
//
// Loops of some tens of microseconds often take longer on several cores than on one: the other cores are busy, or have
// to wake up for each loop. Which of both holds depends on the model, its sizes and the load, so runs of about equal
// sizes are timed both ways. The faster way is used, and the other one tried from time to time. Only short runs are
// ever tried on one thread. Belongs to an instance; used by one thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"

namespace tt::server {

class ThreadTuner {
 public:
  using Duration = std::chrono::nanoseconds;

  // A run that takes longer than this on several threads, times their number, always uses them.
  static constexpr Duration kLongest = std::chrono::milliseconds(20);
  // Every so many runs of a size, the way that was slower is tried again.
  static constexpr uint32_t kInterval = 64;

  explicit ThreadTuner(int threads) : threads_(threads) {}  // that a run can use

  // Whether the next run is to use one thread. `key` identifies runs of about equal sizes.
  bool uses_one(uint64_t key);
  // Reports the time of a run per unit of work, of which runs with this key have about as many.
  void add(uint64_t key, bool one, Duration time, double work);

 private:
  // Runs of a size, by the way: on several threads, on one.
  struct Times {
    std::array<double, 2> mean{};  // nanoseconds per unit of work
    std::array<uint32_t, 2> count{};
    uint32_t runs = 0;
    bool is_long = false;
  };

  const int threads_;
  absl::flat_hash_map<uint64_t, Times> times_;
};

}  // namespace tt::server
