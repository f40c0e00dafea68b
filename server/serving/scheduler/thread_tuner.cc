#include "server/serving/scheduler/thread_tuner.h"

#include <algorithm>

namespace tt::server {
namespace {

constexpr size_t kMaxKeys = 256;

// Of an even number, the lower of the middle ones: interrupted runs take longer, none is faster than it should be.
template <size_t kCount>
double median_of(std::array<double, kCount> values) {
  const auto middle = values.begin() + (kCount - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool ThreadTuner::uses_one(uint64_t key) {
  if (threads_ <= 1) return false;
  if (times_.size() >= kMaxKeys && !times_.contains(key)) times_.clear();
  const Times& times = times_[key];
  return times.run < kComparison ? is_one_tried(times) : times.one;
}

void ThreadTuner::add(uint64_t key, bool one, Duration time, double work) {
  const auto found = times_.find(key);
  if (found == times_.end()) return;
  Times& times = found->second;
  const double each = static_cast<double>(time.count()) / std::max(work, 1.0);
  if (times.run < kComparison) {
    if (one == is_one_tried(times)) compare(&times, time, each);
  } else if (one == times.one) {
    watch(&times, time, each);
  }
}

void ThreadTuner::compare(Times* times, Duration time, double each) {
  const size_t way = is_one_tried(*times) ? 1 : 0;
  const uint32_t run = times->run++;
  if (run % kBlock != 0) {
    times->samples[way][times->count[way]++] = each;
    if (run < kBlock) times->least = std::min(times->least, time);
  }
  if (times->run == kBlock && times->least > kLongest / threads_) {  // not to be tried on one thread
    times->run = kComparison;
    times->is_long = true;
    times->one = false;
    times->is_chosen = times->is_contested = false;
    times->runs = 0;
  } else if (times->run == kComparison) {
    times->is_long = false;
    choose(times);
  }
}

void ThreadTuner::choose(Times* times) {
  const double medians[2] = {median_of(times->samples[0]), median_of(times->samples[1])};
  times->runs = 0;
  if (!times->is_chosen) {
    times->is_chosen = true;
    times->one = !(medians[0] < kFaster * medians[1]);
  } else if (medians[times->one ? 0 : 1] < kFaster * medians[times->one ? 1 : 0]) {
    if (!times->is_contested) {
      begin_comparison(times);
      times->is_contested = true;
      return;
    }
    times->one = !times->one;
    times->interval = kFirstInterval;
  } else {
    times->interval = std::min(2 * times->interval, kInterval);
  }
  times->is_contested = false;
  times->median = medians[times->one ? 1 : 0];
}

void ThreadTuner::watch(Times* times, Duration time, double each) const {
  times->window[times->in_window++] = each;
  times->window_least = std::min(times->window_least, time);
  ++times->runs;
  if (times->in_window == kWindow) {
    const double median = median_of(times->window);
    const bool is_short = times->is_long && times->window_least <= kLongest / threads_;
    const bool has_changed =
        !times->is_long && std::max(median, times->median) > kChange * std::min(median, times->median);
    times->in_window = 0;
    times->window_least = Duration::max();
    if (is_short || has_changed) return begin_comparison(times);
  }
  if (!times->is_long && times->runs >= times->interval) begin_comparison(times);
}

void ThreadTuner::begin_comparison(Times* times) {
  times->run = 0;
  times->count = {};
  times->least = Duration::max();
  times->in_window = 0;
  times->window_least = Duration::max();
}

}  // namespace tt::server
