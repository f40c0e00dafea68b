// The limit of log lines about sessions, since clients can open and end sessions at any rate.
#pragma once

#include <chrono>

#include "server/log.h"

namespace tt::server {

// Shared by all callers; thread-safe.
inline LogLimit& log_sessions() {
  static LogLimit limit(200, std::chrono::milliseconds(100));
  return limit;
}

}  // namespace tt::server
