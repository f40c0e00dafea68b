// ThreadTuner: chooses, by measured times, whether a model's run uses one thread or several.
//
// Loops of some tens of microseconds often take longer on several cores than on one: the other cores are busy, or have
// to wake up for each loop. Which of both holds depends on the model, its sizes and the load, so runs of about equal
// sizes are timed both ways. Times of single runs vary by more than the ways differ, and a mean follows the ones that
// were interrupted. So a choice is the result of a comparison of medians:
//
// - A comparison is four blocks of runs: several threads, one, one, several. A load that grows or falls meanwhile then
//   slows both ways. The first run of a block is not counted: it compiles, or wakes up threads.
// - The first comparison chooses several threads if they are faster by a tenth, else one, which leaves the other cores
//   to others. A later one changes the choice only if the other way is faster by a tenth, and so is it in another
//   comparison that follows at once: two ways that take about equally long do not alternate.
// - A comparison is made again after 64 runs, and then after twice as many each time, up to 1,024, while the choice is
//   the same; and when the load has changed: if the median of 16 runs differs from that of the last comparison by half.
//
// Only short runs are ever tried on one thread. Belongs to an instance; used by one thread at a time.
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

  // Runs that take longer than this on several threads, times their number, always use them.
  static constexpr Duration kLongest = std::chrono::milliseconds(20);
  static constexpr uint32_t kBlock = 5, kBlocks = 4;                 // runs of a block, blocks of a comparison
  static constexpr uint32_t kFirstInterval = 64, kInterval = 1'024;  // runs between comparisons
  static constexpr size_t kWindow = 16;                              // runs by which a change of the load is noticed
  static constexpr double kFaster = 0.9;                             // of the other way's time
  static constexpr double kChange = 1.5;                             // of the load

  explicit ThreadTuner(int threads) : threads_(threads) {}  // that a run can use

  // Whether the next run is to use one thread. `key` identifies runs of about equal sizes.
  bool uses_one(uint64_t key);
  // Reports the time of a run per unit of work, of which runs with this key have about as many.
  void add(uint64_t key, bool one, Duration time, double work);

 private:
  static constexpr uint32_t kComparison = kBlock * kBlocks;
  static constexpr size_t kSamples = (kBlock - 1) * kBlocks / 2;  // of a comparison, each way

  // Runs of a size; times are nanoseconds per unit of work.
  struct Times {
    uint32_t run = 0;  // number of the next one in the comparison; kComparison: there is none
    // By the way: on several threads, on one.
    std::array<std::array<double, kSamples>, 2> samples{};
    std::array<size_t, 2> count{};
    Duration least = Duration::max();  // of a run of the comparison's first block
    bool one = false;                  // the choice
    bool is_chosen = false;
    bool is_contested = false;  // the last comparison was for the other way
    bool is_long = false;
    double median = 0;  // of the choice in the last comparison
    uint32_t interval = kFirstInterval;
    uint32_t runs = 0;  // since the last comparison
    std::array<double, kWindow> window{};
    size_t in_window = 0;
    Duration window_least = Duration::max();
  };

  static bool is_one_tried(const Times& times) { return times.run / kBlock == 1 || times.run / kBlock == 2; }
  void compare(Times* times, Duration time, double each);
  void watch(Times* times, Duration time, double each) const;
  static void begin_comparison(Times* times);
  static void choose(Times* times);

  const int threads_;
  absl::flat_hash_map<uint64_t, Times> times_;
};

}  // namespace tt::server
