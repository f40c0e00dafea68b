#include "engine/account.h"

namespace tt {

bool Account::charge(uint64_t bytes) {
  uint64_t now = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (limit_ != 0 && now > limit_) [[unlikely]] {
    refund(bytes);
    return false;
  }
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

}  // namespace tt
