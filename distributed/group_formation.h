// Making the process groups of a session: where their ranks meet, and how they are connected.
#pragma once

#include <memory>
#include <string>

#include "distributed/group/process_group.h"
#include "distributed/peers/peer_policy.h"

namespace tt::distributed {

// The store in which the ranks meet, and the kind of connection: "gloo", "shm" or "" for either.
struct GroupPlace {
  std::string address, token, backend;
};

// Throws Error.
std::shared_ptr<ProcessGroup> make_group(const ProcessGroup::Options& options,
                                         const std::shared_ptr<SuspensionNotifier>& notifier);
// Connects the ranks, in the background.
std::shared_ptr<Work> form_group(ProcessGroup& group, const GroupPlace& place, const PeerPolicy& peers);

}  // namespace tt::distributed
