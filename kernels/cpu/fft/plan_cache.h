// PlanCache: the plans of recently used lengths, bounded in bytes. Creating a plan costs as much as transforming a few
// lines. One per type of plan, for the process. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/memory/workspace_charge.h"

namespace tt::cpu {

// Plan is FftPlan or LongLine.
template <typename Plan>
class PlanCache {
 public:
  // Throws what the plan's constructor throws, and Error (kOutOfMemory) if the session has no room for its bytes.
  static std::shared_ptr<const Plan> get(int64_t n, bool for_reals) {
    PlanCache& cache = instance();
    {
      const MutexLock lock(cache.mutex_);
      auto& kept = cache.kept_;
      for (size_t i = 0; i < kept.size(); ++i) {
        if (kept[i].plan->length() != n || kept[i].for_reals != for_reals) continue;
        std::rotate(kept.begin(), kept.begin() + i, kept.begin() + i + 1);
        return kept[0].plan;
      }
    }
    const WorkspaceCharge charge(static_cast<uint64_t>(Plan::creation_bytes(n)));
    auto plan = std::make_shared<const Plan>(n, for_reals);
    const MutexLock lock(cache.mutex_);
    cache.keep(plan, for_reals);
    return plan;
  }
  // Drops the plans; transforms that use them continue.
  static void clear() {
    const MutexLock lock(instance().mutex_);
    instance().kept_.clear();
  }

 private:
  static constexpr size_t kMaxBytes = size_t{4} << 20;
  struct Kept {
    std::shared_ptr<const Plan> plan;
    bool for_reals;
  };

  static PlanCache& instance() {
    static PlanCache cache;
    return cache;
  }
  void keep(std::shared_ptr<const Plan> plan, bool for_reals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (plan->bytes() > kMaxBytes) return;
    kept_.insert(kept_.begin(), {std::move(plan), for_reals});
    size_t bytes = 0, count = 0;
    while (count < kept_.size() && (bytes += kept_[count].plan->bytes()) <= kMaxBytes) ++count;
    kept_.erase(kept_.begin() + count, kept_.end());
  }

  Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace tt::cpu
