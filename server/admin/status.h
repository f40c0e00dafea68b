// EngineStatus: what the engine holds and does, as Admin.Status and the HTTP listener report it. Thread-safe.
#pragma once

#include <chrono>

#include "server/session/principal.h"
#include "server/session/sessions.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

class EngineStatus {
 public:
  // `sessions` must outlive the object.
  explicit EngineStatus(const Sessions& sessions) : sessions_(sessions) {}

  // For a caller with the role user, omits what reveals the programs and principals of others.
  v1::StatusReply reply_to(const Principal& caller) const;

 private:
  const Sessions& sessions_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tt::server
