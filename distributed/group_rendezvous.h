// Formation: the ranks of a new group find each other through the store, and choose and connect a backend.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "distributed/group/process_group.h"
#include "distributed/peers/peer_policy.h"

namespace tt::distributed {

// Blocks until all ranks have arrived; throws Error that names the missing ones after the group's timeout. `backend` is
// "shm", "gloo", or "" for shared memory if all ranks are on one host and Gloo otherwise. `host` is this engine's
// address for the other ranks. All ranks must pass the same backend. `peers` limits the addresses of ranks on other
// hosts.
std::unique_ptr<Backend> connect_backend(Store& store, const ProcessGroup::Options& options, const std::string& backend,
                                         const std::string& host, const PeerPolicy& peers,
                                         const std::function<bool()>& is_cancelled);

// Returns the address of the interface through which this host reaches "host:port", or the environment variable
// TELETENSOR_GROUP_HOST if it is set. Throws Error.
std::string local_address_towards(const std::string& address);

}  // namespace tt::distributed
