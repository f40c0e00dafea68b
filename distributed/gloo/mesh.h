// Connects all pairs of the ranks of a group by Gloo's TCP transport.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "distributed/peers/peer_policy.h"
#include "distributed/store/store.h"

namespace tt::distributed {

struct MeshOptions {
  std::string prefix;  // prefix of the keys in the store
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{30'000};  // of forming the group, and of each operation afterwards
  std::string host;                           // local address or host name on which the other ranks reach this one
  PeerPolicy peers = PeerPolicy::any();       // of the addresses that the other ranks publish
};

// The connected ranks. Thread-safe where gloo::Context is.
class Mesh : public gloo::Context {
 public:
  using gloo::Context::Context;
  // Makes blocked and later waits for a buffer throw, which Gloo does not for messages that are partly transferred.
  virtual void abort() = 0;
};

// Blocks until all pairs are connected. Throws Error (RuntimeError) that names a missing rank, after the timeout or
// soon after is_cancelled() returns true. In contrast to Gloo's connectFullMesh(), the number of calls of the store
// does not depend on the number of ranks.
std::shared_ptr<Mesh> connect_mesh(Store& store, const MeshOptions& options, const std::function<bool()>& is_cancelled);

}  // namespace tt::distributed
