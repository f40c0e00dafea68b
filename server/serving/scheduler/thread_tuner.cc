#include "server/serving/scheduler/thread_tuner.h"

#include <algorithm>

namespace tt::server {
namespace {

constexpr size_t kMaxKeys = 256;
// The first runs of a size, half of them each way. The first one of each way compiles, and is not counted.
constexpr uint32_t kTrials = 8;
constexpr double kWeight = 1.0 / 4;

}  // namespace

bool ThreadTuner::uses_one(uint64_t key) {
  if (threads_ <= 1) return false;
  if (times_.size() >= kMaxKeys && !times_.contains(key)) times_.clear();
  Times& times = times_[key];
  const uint32_t run = times.runs++;
  if (times.is_long || times.count[0] < 2) return false;
  if (times.count[1] < 2) return true;
  if (run < kTrials) return run % 2 == 1;
  const bool is_one_faster = times.mean[1] < times.mean[0];
  return run % kInterval == 0 ? !is_one_faster : is_one_faster;
}

void ThreadTuner::add(uint64_t key, bool one, Duration time, double work) {
  const auto found = times_.find(key);
  if (found == times_.end()) return;
  Times& times = found->second;
  const size_t way = one ? 1 : 0;
  const double each = static_cast<double>(time.count()) / std::max(work, 1.0);
  const uint32_t earlier = times.count[way]++;
  if (earlier == 0) return;
  double& mean = times.mean[way];
  if (earlier == 1) {
    mean = each;
  } else if (earlier < kTrials / 2) {
    mean = std::min(mean, each);  // the first runs may be slow for other reasons
  } else {
    mean += (std::min(each, 2 * mean) - mean) * kWeight;  // one run that was interrupted must not decide
  }
  if (!one) times.is_long = time * threads_ > kLongest;
}

}  // namespace tt::server
