// Principal: who opens sessions, with what rights and limits. A value; the table of principals is in
// server/rpc/principals.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/device/fair_queue.h"
#include "engine/memory/quota.h"

namespace tt::server {

enum class Role {
  kObserver,  // sees the engine's status, but opens no session
  kUser,      // opens sessions
  kOperator,  // opens sessions; sees the programs of others, ends sessions and the engine
};

struct Principal {
  std::string name;
  Role role = Role::kUser;
  size_t max_sessions = 0;  // at a time; 0: no limit but the engine's
  // What its sessions hold together, with limits; null: not counted. The table keeps it while the principal exists.
  std::shared_ptr<Quota> quota;
  // Its part of the processors' time; null: as others, with weight 1. The table keeps it likewise.
  std::shared_ptr<Share> share;
};

// Returns "observer", "user" or "operator".
const char* role_name(Role role);

}  // namespace tt::server
