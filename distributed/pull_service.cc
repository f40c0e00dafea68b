#include "distributed/pull_service.h"

#include <algorithm>

#include "distributed/group_rendezvous.h"
#include "distributed/pull/wire.h"
#include "distributed/store/grpc_options.h"
#include "distributed/store/limits.h"
#include "distributed/store/peer_tls.h"
#include "engine/device/cancellation.h"
#include "engine/schema/op_ids.h"

namespace tt::distributed {

PullService::~PullService() {
  current_ = nullptr;
  offers_.end();
}

const PullServer& PullService::serve(const std::string& towards) {
  check_ok(check_address(towards, false));
  check_ok(peers_.check_network(towards));
  absl::StatusOr<std::shared_ptr<PullServer>> server =
      PullServer::shared(local_address_towards(towards), peers_, open_gate_);
  check_ok(server.status());
  if (std::find(servers_.begin(), servers_.end(), *server) == servers_.end()) servers_.push_back(*server);
  return **server;
}

void PullService::offer(const std::string& capability, OfferedValue value, double timeout) {
  offers_.offer(capability, std::move(value), timeout);
}

void PullService::withdraw(const std::string& capability) {
  if (OfferTable* table = offers_.used_table()) table->withdraw(capability, offers_.owner());
}

const std::shared_ptr<grpc::Channel>& PullService::channel_to(const std::string& address) {
  if (channels_.size() >= kMaxChannels && !channels_.contains(address)) channels_.clear();
  std::shared_ptr<grpc::Channel>& channel = channels_[address];
  if (!channel) {
    grpc::ChannelArguments arguments = channel_arguments();
    arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
    channel = grpc::CreateCustomChannel(channel_target(address), peer_channel_credentials(), arguments);
  }
  return channel;
}

Tensor PullService::pull(const PullCall::Source& source, SizesView sizes, DType dtype) {
  if (!current_) {
    check_ok(check_address(source.address, false));
    check_ok(check_token(source.token));
    check_ok(OfferTable::check_capability(source.capability));
    absl::StatusOr<std::string> resolved = peers_.resolve(source.address);
    check_ok(resolved.status());
    check_cancelled();
    current_ = std::make_shared<PullCall>(channel_to(*resolved), source, empty(sizes, dtype, Device{}), notifier_);
  }
  if (cancel_requested()) {
    current_ = nullptr;
    check_cancelled();
  }
  if (!current_->ready()) throw Suspended{current_};
  const std::shared_ptr<PullCall> call = std::exchange(current_, nullptr);
  Tensor value = call->result();
  if (!value) {  // bytes have arrived at the deadline
    current_ = call;
    throw Suspended{call};
  }
  return value;
}

void PullService::skipped(const Op& op, Args args, const Error& error, uint32_t /*site*/) {
  offers_.offer_error(op_id::kPullOffer, op, args, error);
}

}  // namespace tt::distributed
