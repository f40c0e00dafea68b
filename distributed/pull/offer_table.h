// OfferTable: the values that the sessions of this process offer to other engines, and the pulls that wait for an
// offer.
//
// Shared by the process's sessions and pull servers, and destroyed with the last of them. Thread-safe. Runs one thread,
// which ends offers and waits at their deadlines. Callbacks run without the table's lock, on the thread of the call
// that completes them or on that thread, and must not block.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt::distributed {

// Stops the transfers of an owner's values when the owner ends, because no account is charged for them afterwards.
// Thread-safe.
class OwnerEnd {
 public:
  using Stop = std::function<void()>;  // called once at most, on any thread; must not block or call this object

  // Returns a number for remove(), or 0 if the owner has ended.
  uint64_t add(Stop stop);
  // No call of `stop` starts afterwards.
  void remove(uint64_t id);
  void end();

 private:
  Mutex mutex_;
  absl::flat_hash_map<uint64_t, Stop> stops_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// A contiguous tensor on the CPU that nothing writes to, or the error in its place.
struct OfferedValue {
  Tensor tensor;
  std::optional<Error> error;
  std::shared_ptr<OwnerEnd> owner_end;  // may be null
};

class OfferTable {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;
  using Value = std::shared_ptr<const OfferedValue>;
  using Taken = std::function<void(absl::StatusOr<Value>)>;

  static constexpr size_t kMaxOffers = 16'384;  // per owner
  static constexpr size_t kMaxWaits = 4'096;
  static constexpr size_t kMaxEnded = 65'536;  // capabilities that are remembered after their end
  static constexpr size_t kMinCapabilityBytes = 22;
  static constexpr size_t kMaxCapabilityBytes = 128;
  static constexpr Milliseconds kMaxTimeout = std::chrono::hours(24 * 30);

  // Returns this process's table.
  static std::shared_ptr<OfferTable> shared();

  OfferTable();
  // No call may be running.
  ~OfferTable();
  OfferTable(const OfferTable&) = delete;
  OfferTable& operator=(const OfferTable&) = delete;

  // INVALID_ARGUMENT unless it consists of letters, digits, - and _, and is long enough for 128 random bits. The
  // message does not contain it.
  static absl::Status check_capability(const std::string& capability);

  // Returns a number for the owner of offers, never 0.
  uint64_t new_owner();
  // Passes the value to the pull that waits for it, or keeps it until it is taken or withdrawn, at most for `timeout`.
  // ALREADY_EXISTS if the capability is or was in use, RESOURCE_EXHAUSTED if the owner has kMaxOffers offers.
  absl::Status offer(const std::string& capability, Value value, uint64_t owner, Milliseconds timeout);
  // Ends an offer that has not been taken. Returns false if the owner has none under this capability.
  bool withdraw(const std::string& capability, uint64_t owner);
  void withdraw_all(uint64_t owner);
  // Call when the owner has ended. Its offers end after `timeout` at the latest; those with the earliest ends are ended
  // at once while the offers of ended owners have more than `max_bytes` in total (0: no limit), because no account that
  // can still be exceeded is charged for them.
  void limit_all(uint64_t owner, Milliseconds timeout, uint64_t max_bytes);
  size_t num_offers(uint64_t owner) const;
  struct Offer {
    std::string capability;
    Value value;
    uint64_t owner;
    bool has_owner;     // false: limit_all() was called
    Milliseconds left;  // until it ends
  };
  std::vector<Offer> offers() const;

  // Calls `taken` once: at once if there is an offer or will be none, otherwise at the offer, or with DEADLINE_EXCEEDED
  // after `timeout`. Returns a number for cancel(), or 0 if `taken` has been called.
  uint64_t take(const std::string& capability, Milliseconds timeout, Taken taken);
  // Ends a wait without calling its `taken`. Returns false if `taken` has been called or is being called.
  bool cancel(uint64_t wait);

 private:
  struct Entry {  // an offer or a wait; both have a deadline
    uint64_t id = 0;
    Clock::time_point deadline;
    Value value;         // of an offer; null for a wait
    uint64_t owner = 0;  // of an offer
    bool has_owner = true;
    Milliseconds timeout{};
    Taken taken;  // of a wait
  };
  using Entries = absl::flat_hash_map<std::string, Entry>;  // by capability

  void insert(const std::string& capability, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry remove(Entries::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void lose_owner(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remember_ended(const std::string& capability) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_at_deadlines();

  mutable Mutex mutex_;
  CondVar changed_;  // an earlier deadline, or stopping_
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, std::string> by_id_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Clock::time_point, uint64_t>> deadlines_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, absl::flat_hash_set<uint64_t>> offers_of_ ABSL_GUARDED_BY(mutex_);  // ids by owner
  absl::flat_hash_set<std::string> ended_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> ended_order_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  // The number of offers whose owner has ended, by the address of their allocation, and the bytes of these allocations.
  // Several owners may offer the same bytes, each with a storage of its own.
  absl::flat_hash_map<const void*, size_t> without_owner_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_without_owner_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t waits_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_owner_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::distributed
