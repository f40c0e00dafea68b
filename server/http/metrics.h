// Metrics: the engine's state as Prometheus's metric families, computed when they are collected.
//
// Operations cost nothing for it: every value exists for other reasons (status, accounts, allocators), except the times
// of frames (server/session/frame_times.h). Values by principal are sums over its sessions, those that have ended
// included. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "server/admin/status.h"
#include "server/http/gpu_monitor.h"
#include "server/session/frame_times.h"
#include "server/trace/tracer.h"

namespace tt::server {

class Metrics {
 public:
  // All must outlive the object. `times` are null if other processes execute the frames; `tracer` is null if the engine
  // exports no spans; `gpus` may be null: without the utilisation of GPUs.
  Metrics(const EngineStatus& status, const FrameTimes* times, const Tracer* tracer, const GpuMonitor* gpus)
      : status_(status), times_(times), tracer_(tracer), gpus_(gpus) {}

  // Returns all families in Prometheus's text format, version 0.0.4.
  std::string text() const;

 private:
  const EngineStatus& status_;
  const FrameTimes* const times_;
  const Tracer* const tracer_;
  const GpuMonitor* const gpus_;
};

}  // namespace tt::server
