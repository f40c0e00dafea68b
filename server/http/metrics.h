// Metrics: the engine's state as Prometheus's metric families, computed when they are collected.
//
// Operations cost nothing for it: every value exists for other reasons (status, accounts, allocators), except the times
// of frames (server/session/frame_times.h). Values by principal are sums over its sessions, those that have ended
// included. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/session/frame_times.h"
#include "server/session/sessions.h"
#include "server/workers/workers.h"

namespace tt::server {

class Metrics {
 public:
  // All must outlive the object. `workers` serve the sessions, and are asked for their state; null: this process does.
  Metrics(const Sessions& sessions, const FrameTimes& times, const Workers* workers = nullptr)
      : sessions_(sessions), times_(times), workers_(workers) {}

  // Returns all families in Prometheus's text format, version 0.0.4.
  std::string text() const;

 private:
  const Sessions& sessions_;
  const FrameTimes& times_;
  const Workers* const workers_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tt::server
