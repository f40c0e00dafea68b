// Metrics: the engine's state as Prometheus's metric families, computed when they are collected.
//
// Operations cost nothing for it: every value exists for other reasons (status, accounts, allocators), except the times
// of frames (server/session/frame_times.h). Values by principal are sums over its sessions, those that have ended
// included. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/http/gpu_monitor.h"
#include "server/session/frame_times.h"
#include "server/session/sessions.h"
#include "server/trace/tracer.h"

namespace tt::server {

class Metrics {
 public:
  // All must outlive the object. `tracer` is null if the engine exports no spans; `gpus` may be null: without the
  // utilisation of GPUs.
  Metrics(const Sessions& sessions, const FrameTimes& times, const Tracer* tracer, const GpuMonitor* gpus)
      : sessions_(sessions), times_(times), tracer_(tracer), gpus_(gpus) {}

  // Returns all families in Prometheus's text format, version 0.0.4.
  std::string text() const;

 private:
  const Sessions& sessions_;
  const FrameTimes& times_;
  const Tracer* const tracer_;
  const GpuMonitor* const gpus_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tt::server
