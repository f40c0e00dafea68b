#include "engine/memory/account.h"

namespace tt {

uint64_t Account::Meter::add(uint64_t bytes) { return held.fetch_add(bytes, std::memory_order_relaxed) + bytes; }

void Account::Meter::raise_peak(uint64_t now) {
  uint64_t before = peak.load(std::memory_order_relaxed);
  while (now > before && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

MemoryHistory& Account::make_history() {
  if (!owned_history_) {
    owned_history_ = std::make_unique<MemoryHistory>(*this);
    history_.store(owned_history_.get(), std::memory_order_release);
  }
  return *owned_history_;
}

uint64_t Account::new_tenant() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool Account::charge(uint64_t bytes, Device device) {
  const uint64_t now = all_.add(bytes);
  const uint64_t host = limit_ == 0 ? 0 : host_bytes();
  const uint64_t counted = host > kHostAllowance ? host - kHostAllowance : 0;
  if (limit_ != 0 && (now > limit_ || counted > limit_ - now)) [[unlikely]] {
    all_.held.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  all_.raise_peak(now);
  if (device.type == DeviceType::kCUDA) gpu_meter(device).raise_peak(gpu_meter(device).add(bytes));
  return true;
}

void Account::refund(uint64_t bytes, Device device) {
  all_.held.fetch_sub(bytes, std::memory_order_relaxed);
  if (device.type == DeviceType::kCUDA) gpu_meter(device).held.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace tt
