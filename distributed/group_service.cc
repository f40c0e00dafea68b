#include "distributed/group_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "distributed/operators.h"
#include "engine/device/cancellation.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/session_charge.h"
#include "engine/session/context.h"

namespace tt::distributed {
GroupService::~GroupService() {
  current_.reset();
  started_.clear();
  reducers_.clear();
  groups_.clear();  // before the stores that register their members
}

Tensors GroupService::finish(std::optional<PendingCall>& pending) {
  if (!pending->work->ready()) {
    if (!cancel_requested()) throw Suspended{pending->work};
    const PendingCall call = *std::move(pending);
    pending.reset();
    call.group->abort("the collective was cancelled");
    if (call.undo) call.undo();
    check_cancelled();
  }
  PendingCall call = *std::move(pending);
  pending.reset();
  if (call.work->error()) {
    if (call.undo) call.undo();
    throw Error(*call.work->error());
  }
  if (call.complete) call.complete();
  value_ = call.work->value();
  return std::move(call.results);
}

Tensors GroupService::run(absl::FunctionRef<PendingCall()> start) {
  if (!current_) current_ = start();
  return finish(current_);
}

void GroupService::start(int64_t number, absl::FunctionRef<PendingCall()> start) {
  check(ErrorKind::kValue, number > 0 && !started_.contains(number), "expected an unused number for a collective, got ",
        number);
  check(started_.size() < kMaxStarted, "a session has at most ", kMaxStarted,
        " collectives that it has not waited for");
  started_.emplace(number, start());
}

void GroupService::wait(int64_t number) {
  auto found = started_.find(number);
  check(ErrorKind::kValue, found != started_.end(), "no collective was started under number ", number);
  try {
    finish(found->second);
  } catch (const std::exception&) {
    started_.erase(number);
    throw;
  }
  started_.erase(number);
}

void GroupService::drop(int64_t number) {
  const auto found = started_.find(number);
  if (found == started_.end()) return;
  std::erase_if(dropped_, [](const std::shared_ptr<Work>& work) { return work->ready(); });
  dropped_.push_back(found->second->work);
  started_.erase(found);
}

std::string GroupService::unsaved() const {
  if (is_passed_) {
    const bool is_idle =
        std::all_of(reducers_.begin(), reducers_.end(), [](const auto& each) { return each.second->is_idle(); });
    if (current_ || has_unfinished() || !is_idle) return "a collective of its process group is in progress";
    for (const auto& [number, reducer] : reducers_) {
      const ProcessGroup* const group = &reducer->group();
      if (std::none_of(groups_.begin(), groups_.end(), [&](const auto& e) { return e.second.group.get() == group; }))
        return "it has a module DistributedDataParallel whose process group was destroyed";
    }
    return "";
  }
  if (!groups_.empty() || !started_.empty()) return "it is a member of a process group";
  return stores_.empty() ? "" : "it serves a store of process groups";
}

bool GroupService::has_unfinished() const {
  return !started_.empty() || std::any_of(dropped_.begin(), dropped_.end(),
                                          [](const std::shared_ptr<Work>& work) { return !work->ready(); });
}

bool GroupService::is_completed(int64_t number) const {
  auto found = started_.find(number);
  return found == started_.end() || found->second->work->ready();
}

void GroupService::add_group(int64_t number, std::shared_ptr<ProcessGroup> group, GroupPlace place) {
  check(ErrorKind::kValue, !groups_.contains(number), "group ", number, " already exists");
  check(groups_.size() < kMaxGroups, "a session has at most ", kMaxGroups, " groups");
  groups_.emplace(number, OwnGroup{charge_session("a group", kGroupBytes), std::move(group), std::move(place)});
}

const std::shared_ptr<ProcessGroup>& GroupService::group(int64_t number) const {
  auto found = groups_.find(number);
  check(ErrorKind::kValue, found != groups_.end(), "group ", number, " does not exist, or was destroyed");
  return found->second.group;
}

void GroupService::destroy_group(int64_t number) {
  const std::shared_ptr<ProcessGroup> destroyed = group(number);
  // A receive that no message matches would keep the group.
  absl::erase_if(started_, [&](const auto& entry) { return entry.second->group == destroyed; });
  groups_.erase(number);
}

void GroupService::add_reducer(int64_t number, std::shared_ptr<Reducer> reducer) {
  check(ErrorKind::kValue, !reducers_.contains(number), "reducer ", number, " already exists");
  check(reducers_.size() < kMaxReducers, "a session has at most ", kMaxReducers, " reducers");
  auto& observers = Context::current().services.get<GradientObservers>();
  for (size_t i = 0; i < reducer->parameters().size(); ++i) observers.add(reducer->parameters()[i], reducer, i);
  reducers_.emplace(number, std::move(reducer));
}

const std::shared_ptr<Reducer>& GroupService::reducer(int64_t number) const {
  auto found = reducers_.find(number);
  check(ErrorKind::kValue, found != reducers_.end(), "reducer ", number, " does not exist, or was destroyed");
  return found->second;
}

void GroupService::destroy_reducer(int64_t number) {
  auto& observers = Context::current().services.get<GradientObservers>();
  for (const Tensor& parameter : reducer(number)->parameters()) observers.remove(parameter);
  reducers_.erase(number);
}

int GroupService::serve_store(const std::string& address, const std::string& token) {
  for (ServedStore& s : stores_) {
    if (s.address != address || s.token != token) continue;
    s.is_released = false;
    return s.server->port();
  }
  end_released_stores();
  check(stores_.size() < kMaxStores, "a session serves at most ", kMaxStores, " stores");
  HostCharge own = charge_session("a store", kStoreBytes);
  ThreadShare thread(threads_, 1, "a store");
  const std::shared_ptr<Account> account = AllocScope::current().account;
  const auto charge_contents = [account](int64_t bytes) {
    if (!account) return true;
    if (bytes <= 0) return account->refund_host(static_cast<uint64_t>(-bytes)), true;
    account->charge_host(static_cast<uint64_t>(bytes));  // first: other stores of the session charge at the same time
    if (account->has_host_room(1)) return true;
    account->refund_host(static_cast<uint64_t>(bytes));
    return false;
  };
  absl::StatusOr<std::unique_ptr<StoreServer>> server;
  const absl::Status listening = peers_.listen(address, [&](const std::string& at) {
    server = StoreServer::start(at, token, charge_contents, open_gate_);
    return server.status();
  });
  check(listening.ok(), "cannot serve a store on ", address, ": ", listening.message());
  const std::string bound = absl::StrCat(address.substr(0, address.rfind(':') + 1), (*server)->port());
  stores_.push_back({std::move(own), std::move(thread), *std::move(server), bound, token});
  return stores_.back().server->port();
}

void GroupService::release_store(int64_t port) {
  auto found = std::find_if(stores_.begin(), stores_.end(), [&](const auto& s) { return s.server->port() == port; });
  check(ErrorKind::kValue, found != stores_.end(), "expected the port of a store that this session serves, got ", port);
  found->is_released = true;
  end_released_stores();
}

void GroupService::end_released_stores() {
  std::erase_if(stores_, [](const ServedStore& s) { return s.is_released && s.server->store().has_no_members(); });
}

void GroupService::skipped(const Op& op, Args args, const Error& error, uint32_t site) {
  try {
    enter_with_error(*this, op, args, error, site);
  } catch (const Error&) {
    // The arguments are invalid, so the call would have failed on this rank alone.
  }
}

}  // namespace tt::distributed
