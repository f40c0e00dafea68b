// SessionOffers: the values that one session offers in an OfferTable, for another engine or another session to take.
//
// Owned by a service of the session, and used on the thread on which the session's Context is current. The owner ends
// the offers in its destructor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "distributed/pull/offer_table.h"
#include "engine/schema/op.h"

namespace tt::distributed {

class SessionOffers {
 public:
  // `find_table` returns the table; called at the first use.
  explicit SessionOffers(std::function<std::shared_ptr<OfferTable>()> find_table)
      : find_table_(std::move(find_table)) {}

  OfferTable& table();
  // Null before the first use.
  OfferTable* used_table() const { return table_.get(); }
  // The session's number in the table; 0 before the first use.
  uint64_t owner() const { return owner_; }

  // Throws Error if the capability or the timeout in seconds is invalid, or the session has too many offers.
  void offer(const std::string& capability, OfferedValue value, double timeout);
  // Call for an instruction that is not executed because an argument is poisoned with `error`. If it is an instruction
  // of the operator `offering`, whose arguments are a tensor, a capability and a timeout, offers the error.
  void offer_error(uint16_t offering, const Op& op, Args args, const Error& error);
  // Withdraws the offers and stops the transfers of those that were taken.
  void end();
  // Whether no value is offered that was not taken.
  bool empty() const;
  // Estimated memory of the offers, besides the tensors.
  uint64_t host_bytes() const;

 private:
  const std::function<std::shared_ptr<OfferTable>()> find_table_;
  std::shared_ptr<OfferTable> table_;  // null before the first use
  uint64_t owner_ = 0;
  const std::shared_ptr<OwnerEnd> owner_end_ = std::make_shared<OwnerEnd>();
};

// Throws Error (ValueError) unless the number of seconds is positive and at most OfferTable::kMaxTimeout.
std::chrono::milliseconds checked_timeout(double seconds);
// Throws Error unless the status is OK: a ValueError for INVALID_ARGUMENT and ALREADY_EXISTS, else a RuntimeError.
void check_ok(const absl::Status& status);

}  // namespace tt::distributed
