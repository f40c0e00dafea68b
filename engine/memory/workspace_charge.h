// WorkspaceCharge: charges the current session for host memory that a kernel, or a library that it calls, allocates
// outside of the engine's pool for the duration of a call.
//
// Create it on the thread that executes the session's instruction, before the memory is allocated; threads of the pool
// have no session. Without a session nothing is charged.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/memory/account.h"

namespace tt {

class WorkspaceCharge {
 public:
  // Throws Error(kOutOfMemory) if the session's limit has no room for `bytes`.
  explicit WorkspaceCharge(uint64_t bytes);
  ~WorkspaceCharge();
  WorkspaceCharge(const WorkspaceCharge&) = delete;
  WorkspaceCharge& operator=(const WorkspaceCharge&) = delete;

 private:
  std::shared_ptr<Account> account_;  // null if nothing is charged
  uint64_t bytes_;
};

}  // namespace tt
