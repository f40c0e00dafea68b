// PullServer: sends this process's offers to other engines (proto/teletensor/v1/pull.proto).
//
// Uses gRPC's callback API, so that a waiting call holds no thread. A call's token is checked before its request is
// read; its capability selects the offer. A transfer whose receiver takes no bytes for the stall limit is ended. Shared
// by the sessions of the process, and stopped with the last of them. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "distributed/peers/peer_policy.h"
#include "distributed/pull/offer_table.h"
#include "distributed/store/connection_gate.h"

namespace tt::distributed {

class PullServer {
 public:
  static constexpr std::chrono::milliseconds kStallLimit{60'000};

  // Returns the process's server on this address of the host. The first call starts it, with its limit. UNAVAILABLE if
  // the address cannot be bound, PERMISSION_DENIED if `peers` does not allow it.
  static absl::StatusOr<std::shared_ptr<PullServer>> shared(const std::string& host, const PeerPolicy& peers,
                                                            const OpenGate& open_gate = {},
                                                            std::chrono::milliseconds stall_limit = kStallLimit);
  // Ends all calls and closes the port.
  ~PullServer();
  PullServer(const PullServer&) = delete;
  PullServer& operator=(const PullServer&) = delete;

  const std::string& address() const;  // "host:port"
  const std::string& token() const;    // 128 random bits as text

 private:
  class Impl;
  explicit PullServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::distributed
