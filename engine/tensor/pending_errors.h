// PendingErrors: the unfinished asynchronous checks that a value depends on.
#pragma once

#include <cstdint>

namespace tt {

// A set of tickets (engine/session/async_errors.h). At most kMaxTickets are open at a time, so a window of that size
// holds all of them.
class PendingErrors {
 public:
  static constexpr uint64_t kMaxTickets = 64;

  // Returns the members that are still open, given that every ticket before `oldest` is retired: bit i is ticket
  // `oldest` + i.
  uint64_t open_since(uint64_t oldest) const {
    const uint64_t retired = oldest - first_;
    return retired >= kMaxTickets ? 0 : bits_ >> retired;
  }
  void set(uint64_t oldest, uint64_t bits) {
    first_ = oldest;
    bits_ = bits;
  }
  bool empty() const { return bits_ == 0; }

 private:
  uint64_t first_ = 0;
  uint64_t bits_ = 0;
};

}  // namespace tt
