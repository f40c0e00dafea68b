// AllocScope: the current thread's allocation context: the account to charge, the streams that order the use of memory,
// and the source line.
//
// Base class of a session's Context (session/context.h), which is current on the thread that executes for the session.
// On other threads the current scope has no account, and its streams are the devices' default streams.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/memory/account.h"
#include "engine/schema/device.h"

namespace tt {

class Stream;

class AllocScope {
 public:
  AllocScope() = default;
  virtual ~AllocScope() = default;
  AllocScope(const AllocScope&) = delete;
  AllocScope& operator=(const AllocScope&) = delete;

  std::shared_ptr<Account> account;  // if null, nothing is charged
  uint32_t site = 0;                 // the client's number for the source line of the current instruction; 0: unknown

  // The stream for this scope's work on a device. Throws Error if there is no such device.
  virtual Stream& stream(Device device);

  // The calling thread's scope.
  static AllocScope& current();

 protected:
  // The scope that is current on this thread; null if none. Every current scope is a Context: CallScope and Context
  // cast it to their own type.
  static AllocScope* current_or_null();
  static void set_current(AllocScope* scope);
};

}  // namespace tt
