// Admissions: single-use keys by which sessions are opened for principals that another process has authenticated: in a
// worker for its one principal, in an engine for those of a front engine (--placed-by).
//
// That process sends a key to this one and to the client, and the client opens its session with it. A key is compared
// in constant time, admits one session, and expires after seconds. Also holds the principals with their limits, which
// that process may change. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  static constexpr size_t kMaxKeys = 1'024;  // at a time, in a worker
  // The same in an engine: of each principal, and in all.
  static constexpr size_t kMaxKeysOfPrincipal = 64, kMaxKeysOfEngine = 16'384;

  static constexpr size_t kMaxPrincipals = 10'000;

  // `worker_of`: the principal of this worker; empty in an engine, which learns its principals from add().
  explicit Admissions(std::string worker_of = "");

  // Whether this process opens sessions in no other way.
  bool is_worker() const { return !worker_of_.empty(); }
  const std::string& worker_of() const { return worker_of_; }

  // Allows the session with this number (0: the next) to be opened by `key` until `lifetime` has passed.
  // INVALID_ARGUMENT for a key of another size, RESOURCE_EXHAUSTED if there are too many keys or kMaxPrincipals.
  absl::Status add(absl::string_view key, uint64_t session, Clock::duration lifetime, const std::string& principal);
  // Whether take() would succeed.
  bool has(absl::string_view key) const;
  // Uses the key up. Returns what it admits, or nothing if the key is unknown, used or expired.
  struct Admitted {
    uint64_t session = 0;
    Principal principal{};
  };
  std::optional<Admitted> take(absl::string_view key);
  // Forgets all keys of a principal.
  void clear(absl::string_view principal);
  // The number of keys that can be used.
  size_t size() const;
  // Whether add() has been called for the principal, or this is its worker.
  bool knows(absl::string_view principal) const;

  // `limits` is null for a principal without limits. RESOURCE_EXHAUSTED as from add().
  absl::Status set_limits(const std::string& principal, size_t max_sessions, const QuotaLimits* limits, uint32_t weight,
                          Share::Priority priority);

 private:
  struct Entry {
    std::string key;
    uint64_t session;
    Clock::time_point expires;
    std::string principal;
  };
  struct Known {
    std::shared_ptr<Quota> quota;
    Principal principal;
  };
  // Returns null at kMaxPrincipals.
  Known* known(const std::string& principal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drop_expired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Entry>::const_iterator find(absl::string_view key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string worker_of_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Known, std::less<>> principals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
