#include "distributed/group_image.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "distributed/group_service.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "engine/session/image.h"

namespace tt::distributed {
namespace {

constexpr char kGeneration = '~';
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
  for (const GroupMember* a : ranks) {
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
  std::map<std::pair<std::string, std::string>, std::vector<const GroupMember*>> groups;
  std::map<std::string, int> ranks;  // per store's port
  for (const GroupMember& each : members) {
    if (each.rank < 0) continue;
    groups[{port_of(each.store), each.group}].push_back(&each);
    ++ranks[port_of(each.store)];
  }
  std::vector<std::string> reasons;
  for (const GroupMember& each : members) {
    if (each.rank >= 0) {
      reasons.push_back(why_not_passed(groups[{port_of(each.store), each.group}]));
    } else {
      reasons.push_back(each.size <= ranks[port_of(each.store)]
                            ? ""
                            : "it serves a store of process groups that have ranks on other engines");
    }
  }
  return reasons;
}

std::string next_name(const std::string& name) {
  uint64_t generation = 0;
  const size_t at = name.rfind(kGeneration);
  if (at != std::string::npos && absl::SimpleAtoi(name.substr(at + 1), &generation)) {
    return absl::StrCat(name.substr(0, at + 1), generation + 1);
  }
  return absl::StrCat(name, std::string(1, kGeneration), 1);
}

std::vector<GroupMember> GroupService::members() const {
  std::vector<GroupMember> members;
  for (const auto& [number, own] : groups_) {
    members.push_back(own.group->member());
    members.back().store = own.place.address;
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
    options.name = next_name(in->text());
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

void GroupService::resume() {
  for (PassedStore& store : std::exchange(passed_stores_, {})) {
    serve_store(store.address, store.token);
    ServedStore& served = stores_.back();
    served.is_released = store.is_released;
    for (size_t i = 0; i < store.keys.size(); ++i) {
      const absl::Status status = served.server->store().set({&store.keys[i], 1}, {&store.values[i], 1});
      check(status.ok(), "cannot continue the store of process groups: ", status.message());
    }
  }
  for (auto& [number, own] : groups_) form_group(*own.group, own.place, peers_);
}

}  // namespace tt::distributed
