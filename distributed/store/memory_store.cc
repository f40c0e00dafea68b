#include "distributed/store/memory_store.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tt::distributed {
namespace {

// Longer timeouts are equal to this one, so that deadlines do not overflow.
constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24 * 365);

class MemoryMembership final : public Membership {
 public:
  explicit MemoryMembership(MemoryStore& store) : store_(store) {}
  ~MemoryMembership() override {
    if (!member_) return;
    leave("it left the group");
    MemoryStore::stop_notifying(*member_);
  }
  void leave(const std::string& reason) override { store_.leave(*member_, reason); }

  absl::Status join(const std::string& group, int rank, MemberLeft left) {
    absl::StatusOr<std::shared_ptr<MemoryStore::Member>> member =
        store_.async_join(group, rank, [this] { report_departures(); });
    if (!member.ok()) return member.status();
    MutexLock lock(mutex_);
    member_ = *std::move(member);
    left_ = std::move(left);
    report(lock);
    return absl::OkStatus();
  }

 private:
  void report_departures() {
    MutexLock lock(mutex_);
    if (member_) report(lock);  // otherwise join() reports them
  }
  void report(MutexLock<>&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::StatusOr<std::vector<MemoryStore::Departure>> gone =
        store_.departures(*member_, std::numeric_limits<size_t>::max());
    if (gone.ok()) {
      for (const MemoryStore::Departure& departure : *gone) left_(departure.rank, departure.reason);
    } else if (!lost_) {
      lost_ = true;
      left_(-1, std::string(gone.status().message()));
    }
  }

  MemoryStore& store_;
  std::shared_ptr<MemoryStore::Member> member_;  // set once, under mutex_
  Mutex mutex_;                                  // serialises calls of left_
  MemberLeft left_ ABSL_GUARDED_BY(mutex_);
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
};

size_t bytes_of(const std::string& key, const std::string& value) { return key.size() + value.size() + kPairOverhead; }

}  // namespace

MemoryStore::MemoryStore(Charge charge)
    : charge_(std::move(charge)), deadline_thread_([this] { end_waits_at_deadlines(); }) {}

MemoryStore::~MemoryStore() {
  close("the store was destroyed");
  deadline_thread_.join();
  MutexLock lock(mutex_);
  charge(-charged_);
}

bool MemoryStore::charge(int64_t bytes) {
  if (!charge_ || bytes == 0) return true;
  if (!charge_(bytes)) return false;
  charged_ += bytes;
  return true;
}

void MemoryStore::close(const std::string& reason) {
  Ready ready;
  std::vector<std::shared_ptr<Member>> members;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = absl::UnavailableError(absl::StrCat("[store] ", reason));
    for (auto& [id, waiter] : waiters_) ready.emplace_back(std::move(waiter.done), closed_);
    waiters_.clear();
    waiters_of_key_.clear();
    deadlines_.clear();
    for (auto& [name, group] : groups_) {
      for (auto& [rank, member] : group.members) members.push_back(member);
    }
    deadlines_changed_.notify_all();
  }
  for (auto& [done, result] : ready) done(std::move(result));
  for (const std::shared_ptr<Member>& member : members) member->notify();
}

absl::Status MemoryStore::store_pair(const std::string& key, std::string value, Ready* ready) {
  auto [pair, inserted] = pairs_.try_emplace(key);
  const size_t before = inserted ? 0 : bytes_of(key, pair->second);
  const size_t after = bytes_of(key, value);
  if (after > before && after - before > kMaxTotalBytes - bytes_) {
    const size_t others = bytes_ - before;
    if (inserted) pairs_.erase(pair);
    return absl::ResourceExhaustedError(absl::StrCat("[store] ", quoted(key), " requires ", after,
                                                     " bytes with overhead; the other pairs have ", others, " of ",
                                                     kMaxTotalBytes));
  }
  if (!charge(static_cast<int64_t>(after) - static_cast<int64_t>(before))) {
    if (inserted) pairs_.erase(pair);
    return absl::ResourceExhaustedError(absl::StrCat("[store] ", quoted(key), " requires ", after,
                                                     " bytes with overhead, which exceed the memory limit of the "
                                                     "session that serves the store"));
  }
  bytes_ = bytes_ - before + after;
  pair->second = std::move(value);
  auto waiting = waiters_of_key_.find(key);
  if (waiting == waiters_of_key_.end()) return absl::OkStatus();
  const absl::flat_hash_set<uint64_t> ids = std::move(waiting->second);
  waiters_of_key_.erase(waiting);
  for (uint64_t id : ids) {
    Waiter& waiter = waiters_.at(id);
    if (find_missing(&waiter)) {
      Waiter complete = take(id);
      Values values = values_of(complete);
      ready->emplace_back(std::move(complete.done), std::move(values));
    } else {
      waiters_of_key_[waiter.keys[waiter.missing]].insert(id);
    }
  }
  return absl::OkStatus();
}

bool MemoryStore::find_missing(Waiter* waiter) const {
  // Starts with the key that was missing, so that keys that are set one after the other are searched twice in total.
  const size_t count = waiter->keys.size();
  for (size_t i = 0, key = waiter->missing; i < count; ++i, key = key + 1 == count ? 0 : key + 1) {
    if (pairs_.contains(waiter->keys[key])) continue;
    waiter->missing = key;
    return false;
  }
  return true;
}

MemoryStore::Values MemoryStore::values_of(const Waiter& waiter) const {
  std::vector<std::string> values;
  if (waiter.max_bytes == 0) return values;
  size_t bytes = 0;
  for (const std::string& key : waiter.keys) {
    const std::string& value = pairs_.at(key);
    bytes += value.size();
    if (bytes > waiter.max_bytes && !values.empty()) break;
    values.push_back(value);
  }
  return values;
}

absl::Status MemoryStore::timed_out(const Waiter& waiter) const {
  std::vector<std::string> missing;
  for (const std::string& key : waiter.keys) {
    if (!pairs_.contains(key)) missing.push_back(key);
  }
  return absl::DeadlineExceededError(absl::StrCat("[store] timed out after ", waiter.timeout.count(),
                                                  " ms waiting for ", missing.size() == 1 ? "the key " : "the keys ",
                                                  list_keys(missing)));
}

MemoryStore::Waiter MemoryStore::take(uint64_t id) {
  auto found = waiters_.find(id);
  Waiter waiter = std::move(found->second);
  waiters_.erase(found);
  deadlines_.erase({waiter.deadline, id});
  waiting_bytes_ -= waiter.key_bytes;
  charge(-static_cast<int64_t>(waiter.key_bytes));
  return waiter;
}

void MemoryStore::unregister(uint64_t id) {
  const Waiter& waiter = waiters_.at(id);
  auto waiting = waiters_of_key_.find(waiter.keys[waiter.missing]);
  waiting->second.erase(id);
  if (waiting->second.empty()) waiters_of_key_.erase(waiting);
}

uint64_t MemoryStore::async_get(std::vector<std::string> keys, Milliseconds timeout, size_t max_bytes,
                                std::function<void(Values)> done) {
  Values result = std::vector<std::string>();
  if (absl::Status status = check_keys(keys); !status.ok()) {
    done(std::move(status));
    return 0;
  }
  {
    MutexLock lock(mutex_);
    Waiter waiter{std::move(keys), timeout, {}, max_bytes, {}, 0};
    if (!closed_.ok()) {
      result = closed_;
    } else if (find_missing(&waiter)) {
      result = values_of(waiter);
    } else if (timeout <= Milliseconds::zero()) {
      result = timed_out(waiter);
    } else {
      waiter.key_bytes = kPairOverhead;
      for (const std::string& key : waiter.keys) waiter.key_bytes += key.size() + sizeof(std::string);
      if (waiter.key_bytes > kMaxTotalBytes - waiting_bytes_) {
        result = absl::ResourceExhaustedError(absl::StrCat("[store] too many calls wait: their keys have ",
                                                           waiting_bytes_, " of ", kMaxTotalBytes, " bytes"));
      } else if (!charge(static_cast<int64_t>(waiter.key_bytes))) {
        result = absl::ResourceExhaustedError(
            "[store] a call cannot wait: its keys exceed the memory limit of the session that serves the store");
      } else {
        const uint64_t id = ++last_waiter_;
        waiter.deadline = Clock::now() + std::min<Milliseconds>(timeout, kMaxTimeout);
        waiter.done = std::move(done);
        waiting_bytes_ += waiter.key_bytes;
        waiters_of_key_[waiter.keys[waiter.missing]].insert(id);
        const auto deadline = deadlines_.emplace(waiter.deadline, id).first;
        if (deadline == deadlines_.begin()) deadlines_changed_.notify_all();
        waiters_.emplace(id, std::move(waiter));
        return id;
      }
    }
  }
  done(std::move(result));
  return 0;
}

bool MemoryStore::cancel(uint64_t id) {
  std::optional<Waiter> cancelled;  // destroyed without the lock: `done` may own anything
  MutexLock lock(mutex_);
  if (!waiters_.contains(id)) return false;
  unregister(id);
  cancelled = take(id);
  lock.unlock();
  return true;
}

void MemoryStore::end_waits_at_deadlines() {
  MutexLock lock(mutex_);
  while (closed_.ok()) {
    if (deadlines_.empty()) {
      deadlines_changed_.wait(mutex_);
      continue;
    }
    const auto [deadline, id] = *deadlines_.begin();
    if (Clock::now() < deadline) {
      deadlines_changed_.wait_until(mutex_, deadline);
      continue;
    }
    unregister(id);
    Waiter waiter = take(id);
    absl::Status status = timed_out(waiter);
    MutexUnlock unlocked(mutex_);
    waiter.done(std::move(status));
  }
}

MemoryStore::Values MemoryStore::get(absl::Span<const std::string> keys, Milliseconds timeout) {
  Mutex mutex;
  CondVar completed;
  std::optional<Values> result;
  async_get({keys.begin(), keys.end()}, timeout, std::numeric_limits<size_t>::max(), [&](Values values) {
    MutexLock lock(mutex);
    result = std::move(values);
    completed.notify_one();
  });
  MutexLock lock(mutex);
  completed.wait(mutex, [&] { return result.has_value(); });
  return *std::move(result);
}

absl::Status MemoryStore::wait(absl::Span<const std::string> keys, Milliseconds timeout) {
  Mutex mutex;
  CondVar completed;
  std::optional<absl::Status> result;
  async_get({keys.begin(), keys.end()}, timeout, 0, [&](Values values) {
    MutexLock lock(mutex);
    result = values.status();
    completed.notify_one();
  });
  MutexLock lock(mutex);
  completed.wait(mutex, [&] { return result.has_value(); });
  return *std::move(result);
}

absl::Status MemoryStore::set(absl::Span<const std::string> keys, absl::Span<const std::string> values) {
  if (absl::Status status = check_pairs(keys, values); !status.ok()) return status;
  Ready ready;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = closed_;
    for (size_t i = 0; i < keys.size() && status.ok(); ++i) status = store_pair(keys[i], values[i], &ready);
  }
  for (auto& [done, result] : ready) done(std::move(result));
  return status;
}

absl::StatusOr<int64_t> MemoryStore::add(const std::string& key, int64_t amount) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  Ready ready;
  absl::Status status;
  int64_t sum = 0;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    const auto found = pairs_.find(key);
    if (found != pairs_.end() && !absl::SimpleAtoi(found->second, &sum)) {
      return absl::InvalidArgumentError(absl::StrCat("[store] add: expected an integer as the value of ", quoted(key),
                                                     ", got ", quoted(found->second)));
    }
    if (int64_t old = sum; __builtin_add_overflow(old, amount, &sum)) {
      return absl::InvalidArgumentError(
          absl::StrCat("[store] add: ", old, " + ", amount, " for ", quoted(key), " exceeds 64 bits"));
    }
    status = store_pair(key, absl::StrCat(sum), &ready);
  }
  for (auto& [done, result] : ready) done(std::move(result));
  if (!status.ok()) return status;
  return sum;
}

absl::Status MemoryStore::append(const std::string& key, const std::string& value) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  if (absl::Status status = check_value(value); !status.ok()) return status;
  Ready ready;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    const auto found = pairs_.find(key);
    std::string whole = found == pairs_.end() ? value : absl::StrCat(found->second, value);
    status = check_value(whole);
    if (status.ok()) status = store_pair(key, std::move(whole), &ready);
  }
  for (auto& [done, result] : ready) done(std::move(result));
  return status;
}

absl::StatusOr<std::string> MemoryStore::compare_set(const std::string& key, const std::string& expected,
                                                     const std::string& desired) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  if (absl::Status status = check_value(expected); !status.ok()) return status;
  if (absl::Status status = check_value(desired); !status.ok()) return status;
  Ready ready;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    const auto found = pairs_.find(key);
    if (found == pairs_.end() ? !expected.empty() : found->second != expected) {
      return found == pairs_.end() ? expected : found->second;
    }
    status = store_pair(key, desired, &ready);
  }
  for (auto& [done, result] : ready) done(std::move(result));
  if (!status.ok()) return status;
  return desired;
}

absl::StatusOr<bool> MemoryStore::erase(const std::string& key) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  MutexLock lock(mutex_);
  if (!closed_.ok()) return closed_;
  const auto found = pairs_.find(key);
  if (found == pairs_.end()) return false;
  bytes_ -= bytes_of(key, found->second);
  charge(-static_cast<int64_t>(bytes_of(key, found->second)));
  pairs_.erase(found);
  return true;
}

absl::StatusOr<bool> MemoryStore::check(absl::Span<const std::string> keys) {
  if (absl::Status status = check_keys(keys); !status.ok()) return status;
  MutexLock lock(mutex_);
  if (!closed_.ok()) return closed_;
  for (const std::string& key : keys) {
    if (!pairs_.contains(key)) return false;
  }
  return true;
}

absl::StatusOr<int64_t> MemoryStore::size() {
  MutexLock lock(mutex_);
  if (!closed_.ok()) return closed_;
  return static_cast<int64_t>(pairs_.size());
}

absl::StatusOr<std::unique_ptr<Membership>> MemoryStore::join(const std::string& group, int rank, MemberLeft left) {
  auto membership = std::make_unique<MemoryMembership>(*this);
  if (absl::Status status = membership->join(group, rank, std::move(left)); !status.ok()) return status;
  return membership;
}

bool MemoryStore::make_room_for_member() {
  while (members_ >= kMaxMembers && !unused_groups_.empty()) {
    const auto group = groups_.find(unused_groups_.front());
    members_ -= group->second.left.size();
    groups_.erase(group);
    unused_groups_.pop_front();
  }
  return members_ < kMaxMembers;
}

absl::StatusOr<std::shared_ptr<MemoryStore::Member>> MemoryStore::async_join(const std::string& group, int rank,
                                                                             std::function<void()> changed) {
  if (absl::Status status = check_member(group, rank); !status.ok()) return status;
  std::shared_ptr<Member> member = std::make_shared<Member>(group, rank, std::move(changed));
  bool has_departures;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    auto found = groups_.find(group);
    if (found != groups_.end() && (found->second.members.contains(rank) || found->second.left_ranks.contains(rank))) {
      const bool gone = found->second.left_ranks.contains(rank);
      return absl::AlreadyExistsError(absl::StrCat("[store] rank ", rank, " of group ", quoted(group),
                                                   gone ? " has left the group" : " is a member already"));
    }
    if (found != groups_.end() && found->second.members.empty()) unused_groups_.erase(found->second.unused);
    if (!make_room_for_member()) {
      if (found = groups_.find(group); found != groups_.end() && found->second.members.empty())
        found->second.unused = unused_groups_.insert(unused_groups_.end(), group);
      return absl::ResourceExhaustedError(
          absl::StrCat("[store] too many members: all groups together have ", members_, " of at most ", kMaxMembers));
    }
    Group& joined = groups_[group];  // make_room_for_member() may have moved it
    joined.members.emplace(rank, member);
    ++members_;
    has_departures = !joined.left.empty();
  }
  if (has_departures) member->notify();
  return member;
}

absl::StatusOr<std::vector<MemoryStore::Departure>> MemoryStore::departures(Member& member, size_t max) {
  MutexLock lock(mutex_);
  std::vector<Departure> result;
  if (member.left_) return result;
  if (!closed_.ok()) return closed_;
  const std::vector<Departure>& left = groups_.at(member.group_).left;
  const size_t count = std::min(max, left.size() - member.reported_);
  const auto begin = left.begin() + static_cast<ptrdiff_t>(member.reported_);
  result.assign(begin, begin + static_cast<ptrdiff_t>(count));
  member.reported_ += count;
  return result;
}

// The members of a group have read its keys, "name/...", when it is formed.
void MemoryStore::erase_keys_of(const std::string& group) {
  const std::string prefix = group + "/";
  absl::erase_if(pairs_, [&](const auto& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!absl::StartsWith(pair.first, prefix)) return false;
    bytes_ -= bytes_of(pair.first, pair.second);
    charge(-static_cast<int64_t>(bytes_of(pair.first, pair.second)));
    return true;
  });
}

size_t MemoryStore::num_members() {
  MutexLock lock(mutex_);
  size_t members = 0;
  for (const auto& [name, group] : groups_) members += group.members.size();
  return members;
}

std::vector<std::pair<std::string, std::string>> MemoryStore::pairs() {
  MutexLock lock(mutex_);
  return {pairs_.begin(), pairs_.end()};
}

bool MemoryStore::has_no_members() {
  MutexLock lock(mutex_);
  return groups_.size() == unused_groups_.size();
}

void MemoryStore::leave(Member& member, const std::string& reason) {
  std::vector<std::shared_ptr<Member>> others;
  {
    MutexLock lock(mutex_);
    if (member.left_) return;
    member.left_ = true;
    Group& group = groups_.at(member.group_);
    group.members.erase(member.rank_);
    group.left.push_back({member.rank_, reason.substr(0, kMaxReasonBytes)});
    group.left_ranks.insert(member.rank_);
    if (group.members.empty()) {
      group.unused = unused_groups_.insert(unused_groups_.end(), member.group_);
      erase_keys_of(member.group_);
    }
    if (!closed_.ok()) return;
    for (auto& [rank, other] : group.members) others.push_back(other);
  }
  for (const std::shared_ptr<Member>& other : others) other->notify();
}

void MemoryStore::stop_notifying(Member& member) {
  MutexLock lock(member.notifying_);
  member.changed_ = nullptr;
}

void MemoryStore::Member::notify() {
  MutexLock lock(notifying_);
  if (changed_) changed_();
}

}  // namespace tt::distributed
