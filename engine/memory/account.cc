#include "engine/memory/account.h"

#include "absl/strings/str_cat.h"
#include "engine/memory/bytes.h"

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

Account::~Account() {
  if (!quota_) return;
  if (overdraft_from_.load(std::memory_order_relaxed) != 0) quota_->add_overdrawn(-1);
  quota_->add_bookkeeping(-static_cast<int64_t>(reported_host_.load(std::memory_order_relaxed)),
                          -static_cast<int64_t>(reported_handles_.load(std::memory_order_relaxed)));
}

bool Account::charge(uint64_t bytes, Device device, QuotaPart part) {
  const uint64_t now = all_.add(bytes);
  const uint64_t counted = limit_ == 0 ? 0 : counted_host_bytes();
  const bool fits = limit_ == 0 || (now <= limit_ && counted <= limit_ - now);
  if (!fits || (quota_ && part == QuotaPart::kCharged && !quota_->charge(bytes, device))) [[unlikely]] {
    all_.held.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  all_.raise_peak(now);
  if (is_accelerator(device.type)) gpu_meter(device).raise_peak(gpu_meter(device).add(bytes));
  return true;
}

void Account::refund(uint64_t bytes, Device device, QuotaPart part) {
  all_.held.fetch_sub(bytes, std::memory_order_relaxed);
  if (is_accelerator(device.type)) gpu_meter(device).held.fetch_sub(bytes, std::memory_order_relaxed);
  if (quota_ && part == QuotaPart::kCharged) quota_->refund(bytes, device);
}

bool Account::move(uint64_t bytes, Device from, Device to, bool is_limited) {
  if (quota_ && !quota_->move(bytes, from, to, is_limited)) return false;
  if (is_accelerator(to.type)) gpu_meter(to).raise_peak(gpu_meter(to).add(bytes));
  if (is_accelerator(from.type)) gpu_meter(from).held.fetch_sub(bytes, std::memory_order_relaxed);
  return true;
}

// The exchanges keep the sum of all reports right if several threads report.
void Account::report() {
  const uint64_t host = host_bytes(), handles = handles_.load(std::memory_order_relaxed);
  const uint64_t before = reported_host_.exchange(host, std::memory_order_relaxed);
  const uint64_t handles_before = reported_handles_.exchange(handles, std::memory_order_relaxed);
  quota_->add_bookkeeping(static_cast<int64_t>(host - before), static_cast<int64_t>(handles - handles_before));
  const uint64_t room = quota_->has_handles() ? quota_->host_room() : 0;
  quota_room_.store(room, std::memory_order_relaxed);
  uint64_t none = 0;
  if (room != 0) {
    if (overdraft_from_.exchange(0, std::memory_order_relaxed) != 0) quota_->add_overdrawn(-1);
  } else if (overdraft_from_.compare_exchange_strong(none, std::max<uint64_t>(host - program(), 1),
                                                     std::memory_order_relaxed)) {
    quota_->add_overdrawn(1);
  }
}

uint64_t Account::room_now() const {
  const uint64_t max = max_host_bytes(), now = host_bytes();
  return std::min(now < max ? max - now : 0, quota_->host_room());
}

std::string Account::refusal(uint64_t bytes, Device device) const {
  const uint64_t counted = counted_host_bytes();
  const bool is_own = limit_ != 0 && held() + counted + bytes > limit_;
  if (quota_ && !is_own) {
    if (std::string text = quota_->refusal(bytes, device); !text.empty()) return text;
  }
  return absl::StrCat(owner_, " holds ", bytes_text(held()),
                      counted == 0 ? "" : absl::StrCat(" and ", bytes_text(host_bytes()), " of bookkeeping"),
                      limit_ == 0 ? "" : absl::StrCat(" of its ", bytes_text(limit_), " limit"));
}

std::string Account::bookkeeping_refusal(uint64_t bytes) const {
  const uint64_t max = max_host_bytes(), now = host_bytes();
  if (quota_ && now + bytes <= max) {
    if (std::string text = quota_->bookkeeping_refusal(bytes); !text.empty()) return text;
  }
  return absl::StrCat("handles, gradient graphs and other bookkeeping of ", owner_, " take ", bytes_text(now),
                      " in addition to ", bytes_text(held()), " of tensors",
                      limit_ == 0 ? "" : absl::StrCat("; the limit of ", bytes_text(limit_), " is exceeded"));
}

}  // namespace tt
