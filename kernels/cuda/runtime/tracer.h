// DeviceTracer for GPUs: CUPTI (libraries/cupti.cc), or CUDA events where CUPTI is not available (event_tracer.h).
//
// While a thread's launches are traced, GraphReplayer issues each of them at once: a launch that is replayed later, or
// as part of a graph, could not be linked to its operator.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/device/device_tracer.h"

namespace tt::cuda {

struct TracerOptions {
  size_t buffer_bytes = size_t{1} << 20;
  size_t max_buffers = 64;  // that CUPTI fills at the same time; with more, records are lost and counted
};

// Returns a tracer that opens CUPTI when the first trace starts. At most one tracer may exist. A trace without CUPTI
// has a notice with the reason.
std::unique_ptr<DeviceTracer> make_tracer(const TracerOptions& options = {});
// Returns a tracer whose start() throws Error if CUPTI is not available.
std::unique_ptr<DeviceTracer> make_cupti_tracer(const TracerOptions& options);

// Whether the calling thread is between begin_launches() and end_launches().
bool is_traced();
void enter_traced();
void leave_traced();

}  // namespace tt::cuda
