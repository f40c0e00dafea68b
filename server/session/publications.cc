#include "server/session/publications.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"

namespace tt::server {
namespace {

constexpr int kRecordsPerSecond = 50;
constexpr size_t kMaxPrincipalBytes = 64;
constexpr uint64_t kEntryBytes = 512, kTensorBytes = 256, kStorageBytes = 192;  // estimates

// The same for all causes, so that it does not reveal what others have published.
[[noreturn]] void none(absl::string_view name, absl::string_view principal, const std::string& caller) {
  fail(ErrorKind::kValue, principal, " has published nothing as \"", name, "\" that ", caller,
       " may use: there is no such publication, it has ended, or it is for others");
}

bool is_word(absl::string_view text, absl::string_view punctuation) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || punctuation.find(c) != punctuation.npos;
  });
}

void check_keys(const Publication& publication) {
  if (!publication.is_dict) return;
  absl::flat_hash_set<absl::string_view> keys;
  for (const PublishedTensor& tensor : publication.tensors) {
    const std::string& key = tensor.key;
    const bool is_valid = !key.empty() && key.size() <= Publications::kMaxKeyBytes && printable(key) == key;
    check(ErrorKind::kValue, is_valid, "[publish] expected keys of 1 to ", Publications::kMaxKeyBytes,
          " bytes of UTF-8 without control characters, got \"", printable(key, 64), "\"");
    check(ErrorKind::kValue, keys.insert(key).second, "[publish] the key \"", key, "\" occurs twice");
  }
}

void check_principals(const Publication& publication) {
  check(ErrorKind::kValue, publication.to.size() <= Publications::kMaxPrincipals, "[publish] expected at most ",
        Publications::kMaxPrincipals, " principals, got ", publication.to.size());
  for (const std::string& name : publication.to) {
    check(ErrorKind::kValue, !name.empty() && name.size() <= kMaxPrincipalBytes && is_word(name, "._-@"),
          "[publish] expected names of principals: 1 to ", kMaxPrincipalBytes, " letters, digits and .-_@, got \"",
          printable(name, kMaxPrincipalBytes), "\"");
  }
}

}  // namespace

uint64_t Publication::bytes() const {
  uint64_t bytes = 0;
  for (const Ref<Storage>& storage : storages) bytes += storage->bytes();
  return bytes;
}

uint64_t Publication::text_bytes() const {
  uint64_t bytes = name.size();
  for (const std::string& principal : to) bytes += principal.size();
  for (const PublishedTensor& tensor : tensors) bytes += tensor.key.size();
  return bytes;
}

Publications::Owner::Owner(const Principal& principal, uint64_t memory_limit, uint64_t tenant)
    : name_(principal.name),
      is_operator_(principal.role == Role::kOperator),
      account_(std::make_shared<Account>(absl::StrCat("the account of ", principal.name, "'s publications"),
                                         memory_limit, Account::DescribeSite{},
                                         tenant != 0 ? tenant : Account::new_tenant(), principal.quota)) {}

std::shared_ptr<Publications::Owner> Publications::owner(const Principal& principal) {
  MutexLock lock(mutex_);
  std::shared_ptr<Owner>& owner = owners_[principal.name];
  if (!owner) owner = std::make_shared<Owner>(principal, memory_limit_, tenant_);
  return owner;
}

void Publications::revoke(absl::string_view principal) {
  Entries ended;  // freed without the lock
  MutexLock lock(mutex_);
  const auto found = owners_.find(principal);
  if (found == owners_.end()) return;
  Owner& owner = *found->second;
  owner.is_revoked_ = true;
  owner.entries_.swap(ended);
  owner.tensors_ = owner.text_bytes_ = 0;
  owners_.erase(found);
  lock.unlock();
}

void Publications::check_name(absl::string_view name) {
  const bool is_valid = !name.empty() && name.size() <= kMaxNameBytes && is_word(name, "._-") &&
                        absl::ascii_isalnum(static_cast<unsigned char>(name[0]));
  check(ErrorKind::kValue, is_valid, "[publish] expected a name of 1 to ", kMaxNameBytes,
        " letters, digits and ._- that begins with a letter or a digit, got \"", printable(name, kMaxNameBytes), "\"");
}

void Publications::add(const Caller& caller, Publication publication, absl::FunctionRef<void()> commit) {
  Owner& owner = *caller.owner;
  const std::string name = publication.name;
  const uint64_t texts = publication.text_bytes();
  const size_t tensors = publication.tensors.size();
  check_name(name);
  check_keys(publication);
  check_principals(publication);
  if (publication.is_for_all) check_same_process(owner, "*");
  for (const std::string& principal : publication.to) check_same_process(owner, principal);
  const uint64_t kept = kEntryBytes + kTensorBytes * tensors + kStorageBytes * publication.storages.size() + texts;
  check(ErrorKind::kOutOfMemory, owner.account_->has_host_room(kept),
        "[publish] out of memory on the host: ", owner.account_->bookkeeping_refusal(kept));
  Entry entry{std::make_shared<const Publication>(std::move(publication)), caller.session,
              HostCharge(owner.account_, kept)};
  MutexLock lock(mutex_);
  check(ErrorKind::kConnection, !owner.is_revoked_, "[publish] the access of ", owner.name_, " was revoked");
  check(ErrorKind::kValue, !owner.entries_.contains(name), "[publish] ", owner.name_, " has published something as \"",
        name, "\" already: unpublish it first");
  check(owner.entries_.size() < kMaxPublications, "[publish] ", owner.name_, " has ", kMaxPublications,
        " publications, the most that a principal may have");
  check(owner.tensors_ + tensors <= kMaxTensors && owner.text_bytes_ + texts <= kMaxTextBytes,
        "[publish] a principal publishes at most ", kMaxTensors, " tensors and ", kMaxTextBytes,
        " bytes of names and keys; ", owner.name_, " has ", owner.tensors_, " and ", owner.text_bytes_, ", and adds ",
        tensors, " and ", texts);
  commit();
  owner.tensors_ += tensors;
  owner.text_bytes_ += texts;
  owner.entries_.emplace(name, std::move(entry));
}

void Publications::publish(const Caller& caller, Publication publication, absl::FunctionRef<void()> commit) {
  const std::string name = publication.name;
  try {
    add(caller, std::move(publication), commit);
  } catch (const Error& error) {
    record(caller, "publication.publish", printable(name, kMaxNameBytes), absl::InvalidArgumentError(error.message()));
    throw;
  }
  record(caller, "publication.publish", name, absl::OkStatus());
}

void Publications::check_same_process(const Owner& caller, absl::string_view principal) const {
  check(ErrorKind::kValue, !is_isolated_ || principal == caller.name_,
        "published tensors: expected no other principal than ", caller.name_,
        ", because this engine serves each in a process of its own (--isolate=principal), got \"",
        printable(principal, kMaxPrincipalBytes), "\"");
}

bool Publications::may_open(const Owner& caller, const Owner& owner, const Publication& publication) const {
  if (&caller == &owner || publication.is_for_all) return true;
  return std::find(publication.to.begin(), publication.to.end(), caller.name_) != publication.to.end();
}

void Publications::use(const Caller& caller, absl::string_view name, absl::string_view principal, const Use& use) {
  const Owner& own = *caller.owner;
  if (principal.empty()) principal = own.name_;
  check_same_process(own, principal);
  absl::Status outcome = absl::NotFoundError("there is no such publication");
  {
    MutexLock lock(mutex_);
    const auto owner = owners_.find(principal);
    if (owner != owners_.end() && !own.is_revoked_) {
      const auto at = owner->second->entries_.find(name);
      if (at != owner->second->entries_.end()) {
        outcome = use.take(owner->second.get(), at) ? absl::OkStatus() : absl::PermissionDeniedError(use.refusal);
      }
    }
  }
  record(caller, use.event, printable(absl::StrCat(principal, "/", name), 2 * kMaxNameBytes), outcome);
  if (!outcome.ok()) none(printable(name, kMaxNameBytes), printable(principal, kMaxPrincipalBytes), own.name_);
}

std::shared_ptr<const Publication> Publications::find(const Caller& caller, absl::string_view name,
                                                      absl::string_view principal) {
  std::shared_ptr<const Publication> found;
  const auto open = [&](Owner* owner, Entries::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!may_open(*caller.owner, *owner, *at->second.publication)) return false;
    found = at->second.publication;
    return true;
  };
  use(caller, name, principal, {"publication.open", "it is published to others", open});
  return found;
}

Publications::Entry Publications::remove(Owner& owner, Entries::iterator at) {
  Entry entry = std::move(at->second);
  owner.tensors_ -= entry.publication->tensors.size();
  owner.text_bytes_ -= entry.publication->text_bytes();
  owner.entries_.erase(at);
  return entry;
}

void Publications::unpublish(const Caller& caller, absl::string_view name, absl::string_view principal) {
  std::optional<Entry> ended;  // freed without the lock
  const auto end = [&](Owner* owner, Entries::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (owner != caller.owner.get() && !caller.owner->is_operator_) return false;
    ended = remove(*owner, at);
    return true;
  };
  use(caller, name, principal, {"publication.unpublish", "it belongs to another principal", end});
}

void Publications::end_session(const Caller& caller) {
  std::vector<Entry> ended;  // freed without the lock
  MutexLock lock(mutex_);
  Owner& owner = *caller.owner;
  for (auto at = owner.entries_.begin(); at != owner.entries_.end();) {
    const auto here = at++;
    if (here->second.session == caller.session && !here->second.publication->persists) {
      ended.push_back(remove(owner, here));
    }
  }
  lock.unlock();
}

bool Publications::publishes(const Caller& caller) const {
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : caller.owner->entries_) {
    if (entry.session == caller.session) return true;
  }
  return false;
}

size_t Publications::size() const {
  MutexLock lock(mutex_);
  size_t count = 0;
  for (const auto& [name, owner] : owners_) count += owner->entries_.size();
  return count;
}

std::string Publications::list(const Caller& caller) const {
  struct Listed {
    std::string owner;
    bool shows_principals;
    std::shared_ptr<const Publication> publication;
  };
  std::vector<Listed> listed;
  {
    MutexLock lock(mutex_);
    const Owner& own = *caller.owner;
    for (const auto& [name, owner] : owners_) {
      for (const auto& [key, entry] : owner->entries_) {
        const bool shows_principals = owner.get() == &own || own.is_operator_;
        if (!own.is_revoked_ && (shows_principals || may_open(own, *owner, *entry.publication))) {
          listed.push_back({name, shows_principals, entry.publication});
        }
      }
    }
  }
  std::sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) {
    return std::pair(a.owner, a.publication->name) < std::pair(b.owner, b.publication->name);
  });
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [owner, shows_principals, publication] : listed) {
    size_t holders = 1;
    for (const Ref<Storage>& storage : publication->storages) holders = std::max(holders, storage->num_holders());
    nlohmann::ordered_json to = nullptr;  // unknown to the caller
    if (publication->is_for_all) {
      to = nlohmann::ordered_json::array({"*"});
    } else if (shows_principals) {
      to = publication->to;
    }
    list.push_back({{"principal", owner},
                    {"name", publication->name},
                    {"bytes", publication->bytes()},
                    {"tensors", publication->tensors.size()},
                    {"sessions", holders - 1},
                    {"read_only", publication->is_read_only},
                    {"persist", publication->persists},
                    {"to", std::move(to)}});
  }
  return list.dump();
}

void Publications::record(const Caller& caller, absl::string_view event, absl::string_view what,
                          const absl::Status& outcome) {
  if (audit_ == nullptr) return;
  int64_t left_out = 0;
  {
    MutexLock lock(mutex_);
    Owner& owner = *caller.owner;
    const auto now = Owner::Clock::now();
    if (now - owner.second_ >= std::chrono::seconds(1)) {
      owner.second_ = now;
      owner.records_ = 0;
    }
    if (++owner.records_ > kRecordsPerSecond) {
      ++owner.left_out_;
      return;
    }
    left_out = std::exchange(owner.left_out_, 0);
  }
  const std::string reason =
      absl::StrCat(what, outcome.ok() ? "" : ": ", outcome.message(),
                   left_out == 0 ? "" : absl::StrCat(" (", left_out, " earlier records of the principal left out)"));
  audit_->record({.event = event,
                  .principal = caller.owner->name(),
                  .session = caller.session,
                  .outcome = outcome,
                  .reason = reason});
}

}  // namespace tt::server
