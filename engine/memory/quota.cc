#include "engine/memory/quota.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/memory/bytes.h"

namespace tt {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

std::atomic<uint64_t> bookkeeping_of_all{0}, max_bookkeeping_of_all{0};

bool exceeds(uint64_t bytes, uint64_t limit) { return limit != 0 && bytes > limit; }

uint64_t room(uint64_t held, uint64_t limit) {
  if (limit == 0) return UINT64_MAX;
  return held < limit ? limit - held : 0;
}

}  // namespace

QuotaLimits Quota::limits() const {
  return {.memory = max_memory_.load(kRelaxed),
          .host_memory = max_host_memory_.load(kRelaxed),
          .gpu_memory = max_gpu_memory_.load(kRelaxed),
          .handles = max_handles_.load(kRelaxed),
          .transfers = max_transfers_.load(kRelaxed),
          .checkpoint_bytes = max_checkpoint_bytes_.load(kRelaxed)};
}

void Quota::set_limits(const QuotaLimits& limits) {
  max_memory_.store(limits.memory, kRelaxed);
  max_host_memory_.store(limits.host_memory, kRelaxed);
  max_gpu_memory_.store(limits.gpu_memory, kRelaxed);
  max_handles_.store(limits.handles, kRelaxed);
  max_transfers_.store(limits.transfers, kRelaxed);
  max_checkpoint_bytes_.store(limits.checkpoint_bytes, kRelaxed);
}

void Quota::limit_bookkeeping_of_all(uint64_t bytes) { max_bookkeeping_of_all.store(bytes, kRelaxed); }

bool Quota::charge(uint64_t bytes, Device device) {
  if (!counts_tensors_) return true;
  if (!charge_here(bytes, device)) return false;
  for (size_t i = 0; i < parents_.size(); ++i) {
    if (parents_[i]->charge(bytes, device)) continue;
    for (size_t charged = 0; charged < i; ++charged) parents_[charged]->refund(bytes, device);
    refund_here(bytes, device);
    return false;
  }
  return true;
}

bool Quota::charge_here(uint64_t bytes, Device device) {
  const bool on_gpu = is_accelerator(device.type);
  const uint64_t max_all = max_memory_.load(kRelaxed);
  const uint64_t max_here = (on_gpu ? max_gpu_memory_ : max_host_memory_).load(kRelaxed);
  if (exceeds(bytes, max_all) || exceeds(bytes, max_here)) return false;  // does not disturb smaller requests meanwhile
  const uint64_t here = meter(device).fetch_add(bytes, kRelaxed) + bytes;
  const uint64_t all = all_.fetch_add(bytes, kRelaxed) + bytes;
  const uint64_t kept = bookkeeping();
  const bool fits = !exceeds(all + kept, max_all) && !exceeds(on_gpu ? here : here + kept, max_here);
  if (!fits) [[unlikely]]
    refund_here(bytes, device);
  return fits;
}

void Quota::refund(uint64_t bytes, Device device) {
  if (!counts_tensors_) return;
  refund_here(bytes, device);
  for (const std::shared_ptr<Quota>& parent : parents_) parent->refund(bytes, device);
}

void Quota::refund_here(uint64_t bytes, Device device) {
  meter(device).fetch_sub(bytes, kRelaxed);
  all_.fetch_sub(bytes, kRelaxed);
}

void Quota::add_bookkeeping(int64_t bytes, int64_t handles) {
  bookkeeping_.fetch_add(static_cast<uint64_t>(bytes), kRelaxed);
  handles_.fetch_add(static_cast<uint64_t>(handles), kRelaxed);
  if (parents_.empty()) bookkeeping_of_all.fetch_add(static_cast<uint64_t>(bytes), kRelaxed);
  for (const std::shared_ptr<Quota>& parent : parents_) parent->add_bookkeeping(bytes, handles);
}

bool Quota::move(uint64_t bytes, Device from, Device to, bool is_limited) {
  if (!counts_tensors_) return true;
  if (!move_here(bytes, from, to, is_limited)) return false;
  for (size_t i = 0; i < parents_.size(); ++i) {
    if (parents_[i]->move(bytes, from, to, is_limited)) continue;
    for (size_t moved = 0; moved < i; ++moved) parents_[moved]->move(bytes, to, from, false);
    move_here(bytes, to, from, false);
    return false;
  }
  return true;
}

bool Quota::move_here(uint64_t bytes, Device from, Device to, bool is_limited) {
  const bool on_gpu = is_accelerator(to.type);
  const uint64_t here = meter(to).fetch_add(bytes, kRelaxed) + bytes;
  const uint64_t counted = on_gpu ? here : here + bookkeeping();
  if (is_limited && exceeds(counted, (on_gpu ? max_gpu_memory_ : max_host_memory_).load(kRelaxed))) {
    meter(to).fetch_sub(bytes, kRelaxed);
    return false;
  }
  meter(from).fetch_sub(bytes, kRelaxed);
  return true;
}

uint64_t Quota::host_room() const {
  const uint64_t kept = bookkeeping();
  uint64_t least = std::min(room(held() + kept, max_memory_.load(kRelaxed)),
                            room(held(Device{}) + kept, max_host_memory_.load(kRelaxed)));
  const uint64_t unused = kHostAllowance - std::min(bookkeeping_.load(kRelaxed), kHostAllowance);
  least = least > UINT64_MAX - unused ? UINT64_MAX : least + unused;
  if (const uint64_t max = max_bookkeeping_of_all.load(kRelaxed); max != 0) {
    least = std::min({least, room(bookkeeping_of_all.load(kRelaxed), max), room(bookkeeping_.load(kRelaxed), max / 2)});
  }
  for (const std::shared_ptr<Quota>& parent : parents_) least = std::min(least, parent->host_room());
  return least;
}

bool Quota::begin_transfer() {
  const uint64_t limit = max_transfers_.load(kRelaxed);
  if (!exceeds(transfers_.fetch_add(1, kRelaxed) + 1, limit)) return true;
  end_transfer();
  return false;
}

std::string Quota::refusal(uint64_t bytes, Device device) const {
  const QuotaLimits max = limits();
  const auto text = [&](uint64_t held, uint64_t limit, const char* where) {
    return absl::StrCat("the sessions of ", principal_, " hold ", bytes_text(held), " of their limit of ",
                        bytes_text(limit), where);
  };
  const uint64_t kept = bookkeeping();
  if (is_accelerator(device.type) && exceeds(held(device) + bytes, max.gpu_memory)) {
    return text(held(device), max.gpu_memory, " on each GPU");
  }
  if (!is_accelerator(device.type) && exceeds(held(device) + kept + bytes, max.host_memory)) {
    return text(held(device) + kept, max.host_memory, " on the host");
  }
  if (exceeds(held() + kept + bytes, max.memory)) return text(held() + kept, max.memory, "");
  for (const std::shared_ptr<Quota>& parent : parents_) {
    if (std::string reason = parent->refusal(bytes, device); !reason.empty()) return reason;
  }
  return "";
}

std::string Quota::bookkeeping_refusal(uint64_t bytes) const {
  if (!has_handles()) {
    return absl::StrCat("the sessions of ", principal_, " have ", handles(), " handles, of at most ",
                        max_handles_.load(kRelaxed));
  }
  if (std::string reason = refusal(bytes, Device{}); !reason.empty()) return reason;
  if (host_room() >= bytes) return "";
  return absl::StrCat("the sessions of ", principal_, " have ", bytes_text(bookkeeping_.load(kRelaxed)),
                      " of bookkeeping, and all sessions of the engine ", bytes_text(bookkeeping_of_all.load(kRelaxed)),
                      " of at most ", bytes_text(max_bookkeeping_of_all.load(kRelaxed)));
}

}  // namespace tt
