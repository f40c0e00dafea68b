#include "server/rpc/admissions.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace tt::server {

Admissions::Admissions(const std::string& principal) : quota_(std::make_shared<Quota>(principal)) {
  MutexLock lock(mutex_);
  principal_.name = principal;
  principal_.share = std::make_shared<Share>(principal);
}

void Admissions::drop_expired() {
  const auto now = Clock::now();
  std::erase_if(entries_, [now](const Entry& each) { return now >= each.expires; });
}

// Compares with every key, and each of its bytes, so that the time reveals nothing about them.
std::vector<Admissions::Entry>::const_iterator Admissions::find(absl::string_view key) const {
  auto found = entries_.end();
  if (key.size() != kKeyBytes) return found;
  const auto now = Clock::now();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const bool same = CRYPTO_memcmp(at->key.data(), key.data(), kKeyBytes) == 0;
    if (same && now < at->expires) found = at;
  }
  return found;
}

absl::Status Admissions::add(absl::string_view key, uint64_t session, Clock::duration lifetime) {
  if (key.size() != kKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("expected a key of ", kKeyBytes, " bytes, got ", key.size()));
  }
  MutexLock lock(mutex_);
  drop_expired();
  if (entries_.size() >= kMaxKeys) {
    return absl::ResourceExhaustedError(absl::StrCat("expected at most ", kMaxKeys, " sessions being opened"));
  }
  entries_.push_back({std::string(key), session, Clock::now() + lifetime});
  return absl::OkStatus();
}

bool Admissions::has(absl::string_view key) const {
  MutexLock lock(mutex_);
  return find(key) != entries_.end();
}

std::optional<uint64_t> Admissions::take(absl::string_view key) {
  MutexLock lock(mutex_);
  const auto found = find(key);
  if (found == entries_.end()) return std::nullopt;
  const uint64_t session = found->session;
  entries_.erase(found);
  return session;
}

void Admissions::clear() {
  MutexLock lock(mutex_);
  entries_.clear();
}

size_t Admissions::size() const {
  MutexLock lock(mutex_);
  const auto now = Clock::now();
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(), [now](const Entry& each) { return now < each.expires; }));
}

void Admissions::set_limits(size_t max_sessions, const QuotaLimits* limits, uint32_t weight, Share::Priority priority) {
  if (limits != nullptr) quota_->set_limits(*limits);
  MutexLock lock(mutex_);
  principal_.max_sessions = max_sessions;
  principal_.share->set(weight, priority);
  if (limits != nullptr) principal_.quota = quota_;
}

Principal Admissions::principal() const {
  MutexLock lock(mutex_);
  return principal_;
}

}  // namespace tt::server
