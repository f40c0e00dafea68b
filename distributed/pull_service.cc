#include "distributed/pull_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "distributed/formation.h"
#include "distributed/pull/wire.h"
#include "distributed/store/grpc_options.h"
#include "distributed/store/limits.h"
#include "engine/device/cancellation.h"
#include "engine/schema/op_ids.h"

namespace tt::distributed {
namespace {

constexpr uint64_t kOfferBytes = 512;  // of bookkeeping, besides the tensor

void check_status(const absl::Status& status) {
  if (status.ok()) return;
  fail(absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status) ? ErrorKind::kValue : ErrorKind::kRuntime,
       status.message());
}

}  // namespace

PullService::~PullService() {
  current_ = nullptr;
  if (offers_) offers_->withdraw_all(owner_);
}

const PullServer& PullService::serve(const std::string& towards) {
  check_status(check_address(towards, false));
  absl::StatusOr<std::shared_ptr<PullServer>> server = PullServer::shared(local_address_towards(towards));
  check_status(server.status());
  if (std::find(servers_.begin(), servers_.end(), *server) == servers_.end()) servers_.push_back(*server);
  return **server;
}

OfferTable& PullService::offers() {
  if (!offers_) {
    offers_ = OfferTable::shared();
    owner_ = offers_->new_owner();
  }
  return *offers_;
}

void PullService::offer(const std::string& capability, OfferedValue value, double timeout) {
  check_status(OfferTable::check_capability(capability));
  check_status(offers().offer(capability, std::make_shared<const OfferedValue>(std::move(value)), owner_,
                              checked_timeout(timeout)));
}

void PullService::withdraw(const std::string& capability) {
  if (offers_) offers_->withdraw(capability, owner_);
}

std::chrono::milliseconds PullService::checked_timeout(double seconds) {
  constexpr double kMaxSeconds = std::chrono::duration<double>(OfferTable::kMaxTimeout).count();
  check(ErrorKind::kValue, seconds > 0 && seconds <= kMaxSeconds, "expected a timeout of at most ", kMaxSeconds,
        " seconds, got ", seconds);
  return std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(seconds * 1000)));
}

const std::shared_ptr<grpc::Channel>& PullService::channel_to(const std::string& address) {
  if (channels_.size() >= kMaxChannels && !channels_.contains(address)) channels_.clear();
  std::shared_ptr<grpc::Channel>& channel = channels_[address];
  if (!channel) {
    grpc::ChannelArguments arguments = channel_arguments();
    arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
    channel = grpc::CreateCustomChannel(channel_target(address), grpc::InsecureChannelCredentials(), arguments);
  }
  return channel;
}

Tensor PullService::pull(const PullCall::Source& source, SizesView sizes, DType dtype) {
  if (!current_) {
    check_status(check_address(source.address, false));
    check_status(check_token(source.token));
    check_status(OfferTable::check_capability(source.capability));
    check_cancelled();
    current_ = std::make_shared<PullCall>(channel_to(source.address), source, empty(sizes, dtype, Device{}), notifier_);
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
  if (op.id != op_id::kPullOffer || args.size() != 3) return;
  if (args[1].kind != Arg::Kind::kString || args[2].kind != Arg::Kind::kFloat) return;
  try {
    offer(std::string(args[1].string()), {Tensor(), error}, args[2].to_double());
  } catch (const Error&) {
    // The arguments are invalid, so the offer would have failed too.
  }
}

uint64_t PullService::host_bytes() const { return offers_ ? offers_->num_offers(owner_) * kOfferBytes : 0; }

}  // namespace tt::distributed
