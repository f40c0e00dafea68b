#include "engine/account.h"

namespace tt {

uint64_t Account::Meter::add(uint64_t bytes) { return held.fetch_add(bytes, std::memory_order_relaxed) + bytes; }

void Account::Meter::raise_peak(uint64_t now) {
  uint64_t before = peak.load(std::memory_order_relaxed);
  while (now > before && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

bool Account::charge(uint64_t bytes, Device device) {
  const uint64_t now = all_.add(bytes);
  if (limit_ != 0 && now > limit_) [[unlikely]] {
    all_.held.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  all_.raise_peak(now);
  if (device.type == DeviceType::kCUDA) of(device).raise_peak(of(device).add(bytes));
  return true;
}

void Account::refund(uint64_t bytes, Device device) {
  all_.held.fetch_sub(bytes, std::memory_order_relaxed);
  if (device.type == DeviceType::kCUDA) of(device).held.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace tt
