// AllocScope: on whose behalf a thread allocates: which account pays, in which streams' order memory is used, and for
// which source line.
//
// A session's Context (session/context.h) is one, and is current on the thread that executes for the session. On a
// thread that executes for no session the current scope has no account, and its streams are the devices' own.
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

  std::shared_ptr<Account> account;  // null: nobody pays
  uint32_t site = 0;                 // the client's number for the line of the running instruction; 0: unknown

  // The order of this scope's work on a device. Throws Error if there is no such device.
  virtual Stream& stream(Device device);

  // The calling thread's.
  static AllocScope& current();

 protected:
  // The scope that was made current on this thread; null if none. Every installed scope is a Context: CallScope
  // and Context cast it to their own type.
  static AllocScope* installed();
  static void install(AllocScope* scope);
};

}  // namespace tt
