#include "distributed/group_formation.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "distributed/group_rendezvous.h"
#include "distributed/nccl/nccl_backend.h"
#include "distributed/store/remote_store.h"
#include "engine/schema/error.h"

namespace tt::distributed {
namespace {

std::shared_ptr<Store> open_store(const PeerPolicy& peers, const std::string& address, const std::string& token,
                                  std::chrono::milliseconds timeout, const std::function<bool()>& is_cancelled) {
  constexpr std::chrono::milliseconds kSlice{1'000};  // how often a waiting rank checks whether its session has ended
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    absl::StatusOr<std::string> resolved = peers.resolve(address);
    absl::Status status = resolved.status();
    if (resolved.ok()) {
      auto store = RemoteStore::connect(*resolved, token, std::min(timeout, kSlice));
      if (store.ok()) return *std::move(store);
      status = store.status();
    }
    // The store's process may start later, and its name may become known only then.
    const bool may_start_later = absl::IsUnavailable(status) || absl::IsNotFound(status);
    check(may_start_later && std::chrono::steady_clock::now() < deadline && !is_cancelled(),
          "cannot reach rank 0's store at ", address, ": ", status.message());
    if (!resolved.ok()) std::this_thread::sleep_for(std::min(timeout, kSlice));
  }
}

}  // namespace

std::shared_ptr<ProcessGroup> make_group(const ProcessGroup::Options& options,
                                         const std::shared_ptr<SuspensionNotifier>& notifier) {
  try {
    return std::make_shared<ProcessGroup>(options, notifier, std::make_unique<NcclBackend>(options.timeout));
  } catch (Error& error) {
    error.set_op("init_process_group");
    throw;
  }
}

std::shared_ptr<Work> form_group(ProcessGroup& group, const GroupPlace& place, const PeerPolicy& peers) {
  return group.form(
      [=, timeout = group.options().timeout](const std::function<bool()>& is_cancelled) {
        return open_store(peers, place.address, place.token, timeout, is_cancelled);
      },
      [=](Store& store, const ProcessGroup::Options& of, const std::function<bool()>& is_cancelled) {
        return connect_backend(store, of, place.backend, local_address_towards(place.address), peers, is_cancelled);
      });
}

}  // namespace tt::distributed
