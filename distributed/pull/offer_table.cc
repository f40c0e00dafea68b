#include "distributed/pull/offer_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tt::distributed {
namespace {

// The same for all causes, so that it does not reveal which capabilities have existed.
absl::Status no_offer() {
  return absl::NotFoundError(
      "[pull] no tensor is offered under this capability: it is wrong, or it was used or withdrawn or has expired");
}

absl::Status timed_out(OfferTable::Milliseconds timeout) {
  return absl::DeadlineExceededError(
      absl::StrCat("[pull] timed out after ", timeout.count(), " ms: no tensor was offered under this capability"));
}

}  // namespace

uint64_t OwnerEnd::add(Stop stop) {
  MutexLock lock(mutex_);
  if (ended_) return 0;
  stops_.emplace(++last_id_, std::move(stop));
  return last_id_;
}

void OwnerEnd::remove(uint64_t id) {
  MutexLock lock(mutex_);
  stops_.erase(id);
}

void OwnerEnd::end() {
  MutexLock lock(mutex_);
  ended_ = true;
  for (const auto& [id, stop] : stops_) stop();
  stops_.clear();
}

std::shared_ptr<OfferTable> OfferTable::shared() {
  static Mutex mutex;
  static auto& table = *new std::weak_ptr<OfferTable>;
  MutexLock lock(mutex);
  std::shared_ptr<OfferTable> shared = table.lock();
  if (!shared) table = shared = std::make_shared<OfferTable>();
  return shared;
}

OfferTable::OfferTable() : thread_([this] { end_at_deadlines(); }) {}

OfferTable::~OfferTable() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

absl::Status OfferTable::check_capability(const std::string& capability) {
  const bool valid = std::all_of(capability.begin(), capability.end(),
                                 [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
  if (valid && capability.size() >= kMinCapabilityBytes && capability.size() <= kMaxCapabilityBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("[pull] expected a capability of ", kMinCapabilityBytes, " to ",
                                                 kMaxCapabilityBytes, " letters, digits, - and _, got ",
                                                 capability.size(), valid ? "" : " characters with others"));
}

uint64_t OfferTable::new_owner() {
  MutexLock lock(mutex_);
  return ++last_owner_;
}

void OfferTable::insert(const std::string& capability, Entry entry) {
  entry.id = ++last_id_;
  by_id_.emplace(entry.id, capability);
  const auto at = deadlines_.emplace(entry.deadline, entry.id).first;
  if (at == deadlines_.begin()) changed_.notify_all();
  if (entry.value) {
    offers_of_[entry.owner].insert(entry.id);
  } else {
    ++waits_;
  }
  entries_.emplace(capability, std::move(entry));
}

OfferTable::Entry OfferTable::remove(Entries::iterator at) {
  Entry entry = std::move(at->second);
  by_id_.erase(entry.id);
  deadlines_.erase({entry.deadline, entry.id});
  if (entry.value) {
    const auto owned = offers_of_.find(entry.owner);
    owned->second.erase(entry.id);
    if (owned->second.empty()) offers_of_.erase(owned);
    if (!entry.has_owner && entry.value->tensor) {
      const Storage& storage = *entry.value->tensor->storage;
      const auto shared = without_owner_.find(storage.data());
      if (shared != without_owner_.end() && --shared->second == 0) {
        bytes_without_owner_ -= storage.bytes();
        without_owner_.erase(shared);
      }
    }
    remember_ended(at->first);
  } else {
    --waits_;
  }
  entries_.erase(at);
  return entry;
}

void OfferTable::remember_ended(const std::string& capability) {
  if (!ended_.insert(capability).second) return;
  ended_order_.push_back(capability);
  if (ended_order_.size() <= kMaxEnded) return;
  ended_.erase(ended_order_.front());
  ended_order_.pop_front();
}

absl::Status OfferTable::offer(const std::string& capability, Value value, uint64_t owner, Milliseconds timeout) {
  Entry waiting;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(capability);
    if (ended_.contains(capability) || (found != entries_.end() && found->second.value)) {
      return absl::AlreadyExistsError("[pull] expected a new capability, got one that is or was in use");
    }
    if (found == entries_.end()) {
      const auto owned = offers_of_.find(owner);
      if (owned != offers_of_.end() && owned->second.size() >= kMaxOffers) {
        return absl::ResourceExhaustedError(
            absl::StrCat("[pull] a session offers at most ", kMaxOffers, " tensors that nobody has pulled"));
      }
      Entry entry;
      entry.deadline = Clock::now() + std::min(timeout, kMaxTimeout);
      entry.value = std::move(value);
      entry.owner = owner;
      insert(capability, std::move(entry));
      return absl::OkStatus();
    }
    waiting = remove(found);
    remember_ended(capability);
  }
  waiting.taken(std::move(value));
  return absl::OkStatus();
}

bool OfferTable::withdraw(const std::string& capability, uint64_t owner) {
  Entry withdrawn;  // its tensor is freed without the lock
  MutexLock lock(mutex_);
  const auto found = entries_.find(capability);
  if (found == entries_.end() || !found->second.value || found->second.owner != owner) return false;
  withdrawn = remove(found);
  lock.unlock();
  return true;
}

void OfferTable::lose_owner(Entry& entry) {
  if (!std::exchange(entry.has_owner, false) || !entry.value->tensor) return;
  const Storage& storage = *entry.value->tensor->storage;
  if (storage.data() && without_owner_[storage.data()]++ == 0) bytes_without_owner_ += storage.bytes();
}

void OfferTable::limit_all(uint64_t owner, Milliseconds timeout, uint64_t max_bytes) {
  std::vector<Entry> ended;  // freed without the lock
  MutexLock lock(mutex_);
  const auto owned = offers_of_.find(owner);
  if (owned == offers_of_.end()) return;
  const Clock::time_point latest = Clock::now() + timeout;
  for (const uint64_t id : owned->second) {
    Entry& entry = entries_.at(by_id_.at(id));
    lose_owner(entry);
    if (entry.deadline <= latest) continue;
    deadlines_.erase({entry.deadline, id});
    entry.deadline = latest;
    deadlines_.emplace(latest, id);
  }
  for (auto at = deadlines_.begin(); max_bytes != 0 && bytes_without_owner_ > max_bytes && at != deadlines_.end();) {
    const auto found = entries_.find(by_id_.at((at++)->second));
    if (!found->second.has_owner) ended.push_back(remove(found));
  }
  changed_.notify_all();
  lock.unlock();
}

void OfferTable::withdraw_all(uint64_t owner) {
  std::vector<Entry> withdrawn;
  MutexLock lock(mutex_);
  const auto owned = offers_of_.find(owner);
  if (owned == offers_of_.end()) return;
  const std::vector<uint64_t> ids(owned->second.begin(), owned->second.end());
  for (uint64_t id : ids) withdrawn.push_back(remove(entries_.find(by_id_.at(id))));
  lock.unlock();
}

size_t OfferTable::num_offers(uint64_t owner) const {
  MutexLock lock(mutex_);
  const auto owned = offers_of_.find(owner);
  return owned == offers_of_.end() ? 0 : owned->second.size();
}

std::vector<OfferTable::Offer> OfferTable::offers() const {
  MutexLock lock(mutex_);
  const auto now = Clock::now();
  std::vector<Offer> offers;
  for (const auto& [capability, entry] : entries_) {
    if (!entry.value) continue;
    const auto left = std::chrono::duration_cast<Milliseconds>(entry.deadline - now);
    offers.push_back({capability, entry.value, entry.owner, entry.has_owner, std::max(left, Milliseconds(1))});
  }
  return offers;
}

uint64_t OfferTable::take(const std::string& capability, Milliseconds timeout, Taken taken) {
  absl::StatusOr<Value> result = no_offer();
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(capability);
    if (found != entries_.end()) {
      if (found->second.value) result = remove(found).value;
    } else if (!ended_.contains(capability)) {
      if (timeout <= Milliseconds::zero()) {
        result = timed_out(timeout);
      } else if (waits_ >= kMaxWaits) {
        result = absl::ResourceExhaustedError(
            absl::StrCat("[pull] ", kMaxWaits, " pulls wait for an offer of this engine already"));
      } else {
        Entry entry;
        entry.timeout = std::min(timeout, kMaxTimeout);
        entry.deadline = Clock::now() + entry.timeout;
        entry.taken = std::move(taken);
        insert(capability, std::move(entry));
        return last_id_;
      }
    }
  }
  taken(std::move(result));
  return 0;
}

bool OfferTable::cancel(uint64_t wait) {
  Entry cancelled;  // destroyed without the lock: `taken` may own anything
  MutexLock lock(mutex_);
  const auto found = by_id_.find(wait);
  if (found == by_id_.end()) return false;
  cancelled = remove(entries_.find(found->second));
  lock.unlock();
  return true;
}

void OfferTable::end_at_deadlines() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (deadlines_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    const auto [deadline, id] = *deadlines_.begin();
    if (Clock::now() < deadline) {
      changed_.wait_until(mutex_, deadline);
      continue;
    }
    Entry ended = remove(entries_.find(by_id_.at(id)));
    MutexUnlock unlocked(mutex_);
    if (ended.taken) ended.taken(timed_out(ended.timeout));
    ended = Entry();
  }
}

}  // namespace tt::distributed
