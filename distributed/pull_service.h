// PullService: a session's offers to other engines, and its pull in progress.
//
// Attached to the session's Context; used on the thread on which the Context is current. Its destruction withdraws the
// session's offers, stops their transfers and ends its pull.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "distributed/peers/peer_policy.h"
#include "distributed/pull/pull_call.h"
#include "distributed/pull/pull_server.h"
#include "distributed/pull/session_offers.h"
#include "engine/session/service.h"

namespace tt::distributed {

class PullService final : public SessionService {
 public:
  // `peers` limits the engines from which and to which the session copies.
  PullService(std::shared_ptr<SuspensionNotifier> notifier, PeerPolicy peers, OpenGate open_gate)
      : notifier_(std::move(notifier)), peers_(std::move(peers)), open_gate_(std::move(open_gate)) {}
  ~PullService() override;

  // Starts, or finds, the process's server on the interface through which this host reaches "host:port". Throws Error.
  const PullServer& serve(const std::string& towards);
  // Keeps the value for the pull that has the capability. Throws Error.
  void offer(const std::string& capability, OfferedValue value, double timeout);
  void withdraw(const std::string& capability);
  // Runs the current instruction's pull into a new tensor on the CPU: the first call starts it and throws Suspended,
  // and so do the calls until it is complete. Then returns the tensor, or throws its error; Cancelled in a cancelled
  // frame.
  Tensor pull(const PullCall::Source& source, SizesView sizes, DType dtype);

  // Offers the error of a poisoned tensor.
  void skipped(const Op& op, Args args, const Error& error, uint32_t site) override;
  std::string unsaved() const override {
    return offers_.empty() ? "" : "it offers a tensor to another engine, which has not copied it yet";
  }
  uint64_t host_bytes() const override { return offers_.host_bytes(); }

 private:
  static constexpr size_t kMaxChannels = 256;
  const std::shared_ptr<grpc::Channel>& channel_to(const std::string& address);

  const std::shared_ptr<SuspensionNotifier> notifier_;
  const PeerPolicy peers_;
  const OpenGate open_gate_;
  std::vector<std::shared_ptr<PullServer>> servers_;
  SessionOffers offers_{OfferTable::shared};
  absl::flat_hash_map<std::string, std::shared_ptr<grpc::Channel>> channels_;  // by address
  std::shared_ptr<PullCall> current_;                                          // of the suspended instruction
};

}  // namespace tt::distributed
