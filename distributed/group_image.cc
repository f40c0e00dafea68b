#include "distributed/group_image.h"

#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/group_service.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "engine/session/image.h"

namespace tt::distributed {
namespace {

constexpr uint64_t kMaxGenerations = uint64_t{1} << 32;
constexpr uint64_t kMaxSize = 65'536;  // of a group
constexpr uint64_t kMaxMilliseconds = uint64_t{10'000'000} * 1000;

// Messages that `from` has sent to `to`, by one of the two counts.
uint64_t count_of(const std::map<int, uint64_t>& counts, int rank) {
  const auto found = counts.find(rank);
  return found == counts.end() ? 0 : found->second;
}

std::string port_of(const std::string& address) { return address.substr(address.rfind(':') + 1); }

std::string why_not_passed(const std::vector<const GroupMember*>& ranks) {
  const GroupMember& first = *ranks.front();
  if (ranks.size() != static_cast<size_t>(first.size)) {
    return absl::StrCat(
        "its process group \"", first.group,
        "\" has other ranks that are not passed on: on other engines, or in sessions that are named too");
  }
  std::set<int> distinct;
  for (const GroupMember* a : ranks) {
    if (!distinct.insert(a->rank).second) {
      return absl::StrCat("rank ", a->rank, " of its process group \"", first.group, "\" exists twice");
    }
    if (!a->is_whole) return absl::StrCat("a rank of its process group \"", first.group, "\" has left or failed");
    if (a->collectives != first.collectives) {
      return absl::StrCat("a collective of its process group \"", first.group, "\" is in progress");
    }
    for (const GroupMember* b : ranks) {
      if (count_of(a->sent, b->rank) == count_of(b->received, a->rank)) continue;
      return absl::StrCat("rank ", b->rank, " of its process group \"", first.group,
                          "\" has not received a message of rank ", a->rank);
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> why_not_passed(const std::vector<GroupMember>& members) {
  // A store is named by the address that the ranks gave: at another host, the same port is another store.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const GroupMember*>> groups;
  const auto group_of = [&groups](const GroupMember& each) -> std::vector<const GroupMember*>& {
    return groups[{each.store, each.token, each.group}];
  };
  std::map<std::string, int> ranks;  // per store's port
  for (const GroupMember& each : members) {
    if (each.rank < 0) continue;
    group_of(each).push_back(&each);
    ++ranks[port_of(each.store)];
  }
  std::vector<std::string> reasons;
  for (const GroupMember& each : members) {
    if (each.rank >= 0) {
      reasons.push_back(why_not_passed(group_of(each)));
    } else {
      reasons.push_back(each.size <= ranks[port_of(each.store)]
                            ? ""
                            : "it serves a store of process groups that have ranks on other engines");
    }
  }
  return reasons;
}

std::vector<GroupMember> GroupService::members() const {
  std::vector<GroupMember> members;
  for (const auto& [number, own] : groups_) {
    members.push_back(own.group->member());
    members.back().store = own.place.address;
    members.back().token = own.place.token;
  }
  for (const ServedStore& store : stores_) {
    GroupMember served;
    served.store = store.address;
    served.rank = -1;
    served.size = static_cast<int>(store.server->store().num_members());
    members.push_back(std::move(served));
  }
  return members;
}

void GroupService::end_stores() { stores_.clear(); }

void GroupService::write_image(ImageTensors* tensors, ImageOutput* out) const {
  out->number(stores_.size());
  for (const ServedStore& store : stores_) {
    out->text(store.address);
    out->text(store.token);
    out->flag(store.is_released);
    const auto pairs = store.server->store().pairs();
    out->number(pairs.size());
    for (const auto& [key, value] : pairs) {
      out->text(key);
      out->text(value);
    }
  }
  out->number(groups_.size());
  for (const auto& [number, own] : groups_) {
    const ProcessGroup::Options& options = own.group->options();
    out->signed_number(number);
    out->text(own.place.address);
    out->text(own.place.token);
    out->text(own.place.backend);
    out->text(options.name);
    out->number(options.generation);
    out->number(static_cast<uint64_t>(options.rank));
    out->number(static_cast<uint64_t>(options.size));
    out->number(static_cast<uint64_t>(options.timeout.count()));
  }
  out->number(reducers_.size());
  for (const auto& [number, reducer] : reducers_) {
    int64_t group = 0;
    for (const auto& [of, own] : groups_) {
      if (own.group.get() == &reducer->group()) group = of;
    }
    out->signed_number(number);
    out->signed_number(group);
    reducer->write_image(tensors, out);
  }
}

void GroupService::read_image(ImageInput* in, const ImageObjects& objects) {
  for (size_t count = in->count(); count > 0; --count) {
    PassedStore store;
    store.address = in->text();
    store.token = in->text();
    store.is_released = in->flag();
    for (size_t pairs = in->count(); pairs > 0; --pairs) {
      store.keys.push_back(in->text());
      store.values.push_back(in->text());
    }
    check(passed_stores_.size() < kMaxStores, "[image] expected at most ", kMaxStores, " stores");
    passed_stores_.push_back(std::move(store));
  }
  for (size_t count = in->count(); count > 0; --count) {
    const int64_t number = in->signed_number();
    GroupPlace place;
    place.address = in->text();
    place.token = in->text();
    place.backend = in->text();
    ProcessGroup::Options options;
    options.name = in->text();
    options.generation = in->number(kMaxGenerations) + 1;
    options.rank = static_cast<int>(in->number(kMaxSize));
    options.size = static_cast<int>(in->number(kMaxSize));
    options.timeout = std::chrono::milliseconds(in->number(kMaxMilliseconds));
    options.threads = threads_;
    check(options.rank < options.size, "[image] expected a rank below the group's size");
    add_group(number, make_group(std::move(options), notifier_), std::move(place));
  }
  for (size_t count = in->count(); count > 0; --count) {
    const int64_t number = in->signed_number();
    const std::shared_ptr<ProcessGroup>& of = group(in->signed_number());
    add_reducer(number, Reducer::read_image(of, in, objects));
  }
}

void GroupService::resume() try {
  std::set<int> released;  // ports
  for (PassedStore& store : passed_stores_) {
    const int port = serve_store(store.address, store.token);
    if (store.is_released) released.insert(port);
    MemoryStore& pairs = stores_.back().server->store();
    for (size_t i = 0; i < store.keys.size(); ++i) {
      const absl::Status status = pairs.set({&store.keys[i], 1}, {&store.values[i], 1});
      check(status.ok(), "cannot continue the store of process groups: ", status.message());
    }
  }
  // After all of them are served: serve_store() ends released stores without members, as these still are.
  for (ServedStore& served : stores_) served.is_released = released.contains(served.server->port());
  passed_stores_.clear();
  for (auto& [number, own] : groups_) form_group(*own.group, own.place, peers_);
} catch (const Error& error) {
  // The groups cannot be formed; collectives would wait for that.
  for (auto& [number, own] : groups_) own.group->abort(absl::StrCat("the engine was replaced: ", error.message()));
  throw;
}

}  // namespace tt::distributed
