// MemoryStore: a Store in this process; StoreServer serves one to other processes.
//
// Besides the blocking functions of Store it has asynchronous ones, so that a waiting remote call holds no thread.
// Thread-safe. Runs one thread, which ends waits at their deadlines. Callbacks run on the thread of the call that
// completes them, or on that thread; they hold none of the store's locks, must not block, and may call the store unless
// noted otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"
#include "distributed/store/limits.h"
#include "distributed/store/store.h"

namespace tt::distributed {

class MemoryStore final : public Store {
 public:
  using Values = absl::StatusOr<std::vector<std::string>>;
  // Charges the owner for bytes of the store, or refunds them if negative. Returns false, having charged nothing, if
  // the owner's memory limit is reached. Called under the store's lock: must not block or call the store.
  using Charge = std::function<bool(int64_t bytes)>;

  // Without `charge` only the limits of limits.h apply.
  explicit MemoryStore(Charge charge = {});
  // Calls close(). No other call may be running, and all memberships must have been destroyed.
  ~MemoryStore() override;

  // Ends waiting calls and later ones with UNAVAILABLE and this reason, and calls MemberLeft(-1, reason). Idempotent.
  void close(const std::string& reason);

  absl::Status set(absl::Span<const std::string> keys, absl::Span<const std::string> values) override;
  Values get(absl::Span<const std::string> keys, Milliseconds timeout) override;
  absl::Status wait(absl::Span<const std::string> keys, Milliseconds timeout) override;
  absl::StatusOr<int64_t> add(const std::string& key, int64_t amount) override;
  absl::Status append(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> compare_set(const std::string& key, const std::string& expected,
                                          const std::string& desired) override;
  absl::StatusOr<bool> erase(const std::string& key) override;
  absl::StatusOr<bool> check(absl::Span<const std::string> keys) override;
  absl::StatusOr<int64_t> size() override;
  absl::StatusOr<std::unique_ptr<Membership>> join(const std::string& group, int rank, MemberLeft left) override;

  // Asynchronous get. Calls `done` once: at once, when all keys exist, after `timeout`, or at close(). Returns a number
  // for cancel(). `done` receives the values of the first keys that have at most `max_bytes` together, but at least
  // one; with `max_bytes` = 0 none.
  uint64_t async_get(std::vector<std::string> keys, Milliseconds timeout, size_t max_bytes,
                     std::function<void(Values)> done);
  // Ends an asynchronous get without calling its `done`. Returns false if `done` has been called or is being called.
  bool cancel(uint64_t id);

  // Whether no group has a member.
  bool has_no_members();
  // The members of all groups.
  size_t num_members();
  std::vector<std::pair<std::string, std::string>> pairs();

  // Asynchronous membership, until leave().
  class Member;
  struct Departure {
    int rank;
    std::string reason;
  };
  // `changed` is called when departures() has more to return. It must not block and must not leave the group.
  absl::StatusOr<std::shared_ptr<Member>> async_join(const std::string& group, int rank, std::function<void()> changed);
  // Returns at most `max` members that have left, each once; none after leave(). UNAVAILABLE after close().
  absl::StatusOr<std::vector<Departure>> departures(Member& member, size_t max);
  // Leaves the group. Idempotent.
  void leave(Member& member, const std::string& reason);
  // After this call, `changed` is not called and is not running. Must not be called by `changed`.
  static void stop_notifying(Member& member);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    std::vector<std::string> keys;
    Milliseconds timeout;
    Clock::time_point deadline;
    size_t max_bytes;
    std::function<void(Values)> done;
    size_t key_bytes;
    size_t missing = 0;  // index of a key that does not exist; the waiter is registered under it
  };
  struct Group {
    std::map<int, std::shared_ptr<Member>> members;
    std::vector<Departure> left;
    absl::flat_hash_set<int> left_ranks;
    std::list<std::string>::iterator unused;  // position in unused_groups_ if `members` is empty
  };
  using Ready = std::vector<std::pair<std::function<void(Values)>, Values>>;

  absl::Status store_pair(const std::string& key, std::string value, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets waiter.missing to a key that does not exist. Returns true if all exist.
  bool find_missing(Waiter* waiter) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Values values_of(const Waiter& waiter) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status timed_out(const Waiter& waiter) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes a waiter that is not registered under a key.
  Waiter take(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void unregister(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes records of groups without members until there is room for one more member.
  bool make_room_for_member() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void erase_keys_of(const std::string& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_waits_at_deadlines();
  bool charge(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Charge charge_;
  Mutex mutex_;
  int64_t charged_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK until close()
  absl::flat_hash_map<std::string, std::string> pairs_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;

  uint64_t last_waiter_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, absl::flat_hash_set<uint64_t>> waiters_of_key_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Clock::time_point, uint64_t>> deadlines_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  CondVar deadlines_changed_;

  absl::flat_hash_map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> unused_groups_ ABSL_GUARDED_BY(mutex_);  // groups that all members have left, oldest first
  size_t members_ ABSL_GUARDED_BY(mutex_) = 0;                    // in `members` and `left` of all groups

  std::thread deadline_thread_;
};

// One rank's membership. Owned by the caller of async_join(), and by the store until the member leaves.
class MemoryStore::Member {
 public:
  Member(std::string group, int rank, std::function<void()> changed)
      : group_(std::move(group)), rank_(rank), changed_(std::move(changed)) {}

 private:
  friend class MemoryStore;
  void notify();

  const std::string group_;
  const int rank_;
  Mutex notifying_;  // held while changed_ runs; acquired before the store's mutex
  std::function<void()> changed_ ABSL_GUARDED_BY(notifying_);  // null after stop_notifying()
  size_t reported_ = 0;  // departures returned so far; guarded by the store's mutex
  bool left_ = false;    // guarded by the store's mutex
};

}  // namespace tt::distributed
