#include "distributed/pull/session_offers.h"

#include <algorithm>

namespace tt::distributed {

OfferTable& SessionOffers::table() {
  if (!table_) {
    table_ = find_table_();
    owner_ = table_->new_owner();
  }
  return *table_;
}

void SessionOffers::offer(const std::string& capability, OfferedValue value, double timeout) {
  check_ok(OfferTable::check_capability(capability));
  value.owner_end = owner_end_;
  check_ok(table().offer(capability, std::make_shared<const OfferedValue>(std::move(value)), owner_,
                         checked_timeout(timeout)));
}

void SessionOffers::offer_error(uint16_t offering, const Op& op, Args args, const Error& error) {
  if (op.id != offering || args.size() != 3) return;
  if (args[1].kind != Arg::Kind::kString || args[2].kind != Arg::Kind::kFloat) return;
  try {
    offer(std::string(args[1].string()), {Tensor(), error, nullptr}, args[2].to_double());
  } catch (const Error&) {
    // The arguments are invalid, so the instruction would have failed too.
  }
}

void SessionOffers::end() {
  if (table_) table_->withdraw_all(owner_);
  owner_end_->end();
}

bool SessionOffers::empty() const { return !table_ || table_->num_offers(owner_) == 0; }

uint64_t SessionOffers::host_bytes() const {
  constexpr uint64_t kBytesPerOffer = 512;
  return table_ ? table_->num_offers(owner_) * kBytesPerOffer : 0;
}

std::chrono::milliseconds checked_timeout(double seconds) {
  constexpr double kMaxSeconds = std::chrono::duration<double>(OfferTable::kMaxTimeout).count();
  check(ErrorKind::kValue, seconds > 0 && seconds <= kMaxSeconds, "expected a timeout of at most ", kMaxSeconds,
        " seconds, got ", seconds);
  return std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(seconds * 1000)));
}

void check_ok(const absl::Status& status) {
  if (status.ok()) return;
  fail(absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status) ? ErrorKind::kValue : ErrorKind::kRuntime,
       status.message());
}

}  // namespace tt::distributed
