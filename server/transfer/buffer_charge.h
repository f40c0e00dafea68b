// BufferCharge: charges a session's account for the memory in which a transfer's call compresses or decompresses
// chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "engine/memory/account.h"

namespace tt::server {

// Used by the call's thread.
class BufferCharge {
 public:
  explicit BufferCharge(std::shared_ptr<Account> account) : account_(account), charge_(std::move(account), 0) {}

  // Room for the bookkeeping of instructions, which should not fail because of a transfer that can wait.
  static constexpr uint64_t kLeft = uint64_t{4} << 20;

  // Raises the charge to `bytes`. Returns false, without an effect, if the account has no room for the difference and
  // `left` more bytes.
  bool raise_to(uint64_t bytes, uint64_t left) {
    static Mutex mutex;  // so that concurrent calls do not use the same room
    MutexLock lock(mutex);
    if (bytes <= charge_.bytes()) return true;
    if (!account_->has_host_room(bytes - charge_.bytes() + left)) return false;
    charge_.set(bytes);
    return true;
  }

 private:
  const std::shared_ptr<Account> account_;
  HostCharge charge_;
};

}  // namespace tt::server
