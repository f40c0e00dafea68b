#include "server/rpc/admissions.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

absl::Status too_many_principals() {
  return absl::ResourceExhaustedError(
      absl::StrCat("expected at most ", Admissions::kMaxPrincipals, " principals of another engine"));
}

}  // namespace

Admissions::Admissions(std::string worker_of) : worker_of_(std::move(worker_of)) {
  MutexLock lock(mutex_);
  if (is_worker()) known(worker_of_);
}

Admissions::Known* Admissions::known(const std::string& principal) {
  if (const auto found = principals_.find(principal); found != principals_.end()) return &found->second;
  if (principals_.size() >= kMaxPrincipals) return nullptr;
  Known& made = principals_[principal];
  made.quota = std::make_shared<Quota>(principal);
  made.principal.name = principal;
  made.principal.share = std::make_shared<Share>(principal);
  return &made;
}

bool Admissions::knows(absl::string_view principal) const {
  MutexLock lock(mutex_);
  return principals_.find(principal) != principals_.end();
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

absl::Status Admissions::add(absl::string_view key, uint64_t session, Clock::duration lifetime,
                             const std::string& principal) {
  if (key.size() != kKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("expected a key of ", kKeyBytes, " bytes, got ", key.size()));
  }
  MutexLock lock(mutex_);
  drop_expired();
  // In an engine, keys that one principal does not use must not keep out the others.
  const auto own = static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(), [&](const Entry& each) { return each.principal == principal; }));
  const size_t most = is_worker() ? kMaxKeys : kMaxKeysOfPrincipal;
  if (own >= most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("expected at most ", most, " sessions being opened by ", principal));
  }
  if (entries_.size() >= kMaxKeysOfEngine) {
    return absl::ResourceExhaustedError(absl::StrCat("expected at most ", kMaxKeysOfEngine, " sessions being opened"));
  }
  if (known(principal) == nullptr) return too_many_principals();
  entries_.push_back({std::string(key), session, Clock::now() + lifetime, principal});
  return absl::OkStatus();
}

bool Admissions::has(absl::string_view key) const {
  MutexLock lock(mutex_);
  return find(key) != entries_.end();
}

std::optional<Admissions::Admitted> Admissions::take(absl::string_view key) {
  MutexLock lock(mutex_);
  const auto found = find(key);
  if (found == entries_.end()) return std::nullopt;
  Admitted admitted{found->session, principals_.find(found->principal)->second.principal};
  entries_.erase(found);
  return admitted;
}

void Admissions::clear(absl::string_view principal) {
  MutexLock lock(mutex_);
  std::erase_if(entries_, [principal](const Entry& each) { return each.principal == principal; });
}

size_t Admissions::size() const {
  MutexLock lock(mutex_);
  const auto now = Clock::now();
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(), [now](const Entry& each) { return now < each.expires; }));
}

absl::Status Admissions::set_limits(const std::string& principal, size_t max_sessions, const QuotaLimits* limits,
                                    uint32_t weight, Share::Priority priority) {
  MutexLock lock(mutex_);
  Known* entry = known(principal);
  if (entry == nullptr) return too_many_principals();
  if (limits != nullptr) entry->quota->set_limits(*limits);
  entry->principal.max_sessions = max_sessions;
  entry->principal.share->set(weight, priority);
  if (limits != nullptr) entry->principal.quota = entry->quota;
  return absl::OkStatus();
}

}  // namespace tt::server
