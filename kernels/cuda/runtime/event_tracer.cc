#include "kernels/cuda/runtime/event_tracer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "engine/schema/error.h"
#include "kernels/cuda/runtime/tracer.h"

namespace tt::cuda {
namespace {

std::atomic<EventTracer*> the_tracer{nullptr};

// Traces and launches that the thread is in.
thread_local std::vector<std::pair<uint32_t, uint32_t>> open_launches;

uint64_t now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace

EventTracer::EventTracer() { the_tracer = this; }
EventTracer::~EventTracer() { the_tracer = nullptr; }

uint32_t EventTracer::start(uint64_t max_activities) {
  MutexLock lock(mutex_);
  traces_[next_].limit = std::min(max_activities, kMaxLaunches);
  return next_++;
}

void EventTracer::begin_launches(uint32_t trace, uint32_t launch) noexcept {
  enter_traced();
  open_launches.emplace_back(trace, launch);
}

void EventTracer::end_launches() noexcept {
  open_launches.pop_back();
  leave_traced();
}

bool EventTracer::prepare(uint32_t number, Device device) {
  MutexLock lock(mutex_);
  const auto found = traces_.find(number);
  if (found == traces_.end()) return false;
  Trace& trace = found->second;
  if (trace.launches.size() >= trace.limit) {
    ++trace.dropped;
    return false;
  }
  if (trace.bases.contains(device.index)) return true;
  const StreamHandle stream = runtime().create_stream();
  const EventHandle event = record_event(stream, /*timed=*/true);
  runtime().synchronize_event(event);
  trace.bases[device.index] = {event, now()};
  runtime().destroy_stream(stream);
  return true;
}

void EventTracer::add(uint32_t number, const Launch& launch) {
  MutexLock lock(mutex_);
  const auto found = traces_.find(number);
  if (found == traces_.end()) return;
  found->second.streams.try_emplace(launch.stream, static_cast<uint32_t>(found->second.streams.size()) + 1);
  found->second.launches.push_back(launch);
}

DeviceActivity EventTracer::activity(Trace& trace, const Launch& launch) {
  const Base& base = trace.bases.at(launch.device.index);
  const double begin = runtime().elapsed_ms(base.event, launch.begin) * 1e6;
  DeviceActivity activity;
  activity.start = base.time + static_cast<uint64_t>(std::max(0.0, begin));
  activity.end = activity.start + static_cast<uint64_t>(runtime().elapsed_ms(launch.begin, launch.end) * 1e6);
  activity.launch = launch.launch;
  activity.device = static_cast<uint32_t>(launch.device.index);
  activity.stream = trace.streams.at(launch.stream);
  return activity;
}

void EventTracer::destroy(const Trace& trace) {
  for (const Launch& launch : trace.launches) {
    runtime().destroy_event(launch.begin);
    runtime().destroy_event(launch.end);
  }
  for (const auto& [device, base] : trace.bases) runtime().destroy_event(base.event);
}

DeviceTrace EventTracer::stop(uint32_t number) {
  Trace trace;
  {
    MutexLock lock(mutex_);
    const auto found = traces_.find(number);
    trace = std::move(found->second);
    traces_.erase(found);
  }
  DeviceTrace result;
  result.names = {"GPU work"};
  result.dropped = trace.dropped;
  uint32_t correlation = 0;
  for (const Launch& launch : trace.launches) {
    try {
      make_current(launch.device);
      result.activities.push_back(activity(trace, launch));
      result.activities.back().correlation = ++correlation;
    } catch (const Error&) {  // it did not complete, or the device was lost
      ++result.dropped;
    }
  }
  destroy(trace);
  std::stable_sort(result.activities.begin(), result.activities.end(),
                   [](const DeviceActivity& a, const DeviceActivity& b) { return a.start < b.start; });
  return result;
}

uint64_t EventTracer::host_bytes() const {
  MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [number, trace] : traces_) bytes += trace.launches.capacity() * sizeof(Launch);
  return bytes;
}

TimedLaunch::TimedLaunch(Device device, StreamHandle stream) {
  EventTracer* const tracer = the_tracer;
  if (tracer == nullptr || open_launches.empty()) return;
  const auto [trace, launch] = open_launches.back();
  if (!tracer->prepare(trace, device)) return;
  launch_ = {launch, device, stream, record_event(stream, /*timed=*/true), nullptr};
  trace_ = trace;
}

TimedLaunch::~TimedLaunch() {
  if (trace_ == 0) return;
  try {
    launch_.end = record_event(launch_.stream, /*timed=*/true);
    the_tracer.load()->add(trace_, launch_);
  } catch (const Error&) {  // the device was lost
    runtime().destroy_event(launch_.begin);
  }
}

}  // namespace tt::cuda
