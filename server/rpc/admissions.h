// Admissions: single-use keys by which a worker admits the sessions of its principal.
//
// The engine authenticates a client, sends a key to the principal's worker and to the client, and the client opens its
// session with it. A key is compared in constant time, admits one session, and expires after seconds. Also holds the
// principal with its limits, which the engine may change. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "engine/memory/quota.h"
#include "server/session/principal.h"

namespace tt::server {

class Admissions {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kKeyBytes = 64;    // hexadecimal digits
  static constexpr size_t kMaxKeys = 1'024;  // at a time

  explicit Admissions(const std::string& principal);

  // Allows the session with this number to be opened by `key` until `lifetime` has passed. INVALID_ARGUMENT for a key
  // of another size, RESOURCE_EXHAUSTED if kMaxKeys have been issued.
  absl::Status add(absl::string_view key, uint64_t session, Clock::duration lifetime);
  // Whether take() would succeed.
  bool has(absl::string_view key) const;
  // Uses the key up. Returns the session's number, or nothing if the key is unknown, used or expired.
  std::optional<uint64_t> take(absl::string_view key);
  // Forgets all keys.
  void clear();
  // The number of keys that can be used.
  size_t size() const;

  // `limits` is null for a principal without limits.
  void set_limits(size_t max_sessions, const QuotaLimits* limits, uint32_t weight, Share::Priority priority);
  Principal principal() const;

 private:
  struct Entry {
    std::string key;
    uint64_t session;
    Clock::time_point expires;
  };
  void drop_expired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Entry>::const_iterator find(absl::string_view key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Quota> quota_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Principal principal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
