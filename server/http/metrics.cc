#include "server/http/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <utility>
#include <vector>

#include "engine/device/devices.h"
#include "server/resident_bytes.h"
#include "server/version.h"
#include "server/workers/worker_calls.h"

namespace tt::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  void add(const char* name, MetricType type, const char* help, double value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family(name, type, help).metric.push_back(std::move(metric));
  }
  void add(const char* name, const char* help, const FrameTimes::Histogram& histogram) {
    ClientMetric metric;
    uint64_t count = 0;
    for (size_t i = 0; i <= FrameTimes::kBounds; ++i) {
      count += histogram.counts[i].load(std::memory_order_relaxed);
      const bool last = i == FrameTimes::kBounds;
      metric.histogram.bucket.push_back(
          {count, last ? std::numeric_limits<double>::infinity() : FrameTimes::bound_seconds(i)});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = 1e-9 * static_cast<double>(histogram.nanoseconds.load(std::memory_order_relaxed));
    family(name, MetricType::Histogram, help).metric.push_back(std::move(metric));
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  MetricFamily& family(const char* name, MetricType type, const char* help) {
    for (MetricFamily& each : families_) {
      if (each.name == name) return each;
    }
    families_.push_back({name, help, type, {}});
    return families_.back();
  }
  std::vector<MetricFamily> families_;
};

constexpr MetricType kGauge = MetricType::Gauge, kCounter = MetricType::Counter;

void add_device(Families& all, const std::string& device, uint64_t allocated, uint64_t reserved, uint64_t limit,
                uint64_t failed) {
  const auto bytes = [&](const char* kind, uint64_t value) {
    all.add("teletensor_device_memory_bytes", kGauge,
            "Memory of a device: requested for tensors, reserved from the system, and the limit (0: none).",
            static_cast<double>(value), {{"device", device}, {"kind", kind}});
  };
  bytes("allocated", allocated);
  bytes("reserved", reserved);
  bytes("limit", limit);
  all.add("teletensor_out_of_memory_total", kCounter, "Requests for memory of a device that failed.",
          static_cast<double>(failed), {{"device", device}});
}

struct PrincipalValues {
  uint64_t sessions, opened, bytes, memory_limit, handles, frames, instructions, failed;
  double cpu_seconds;
};

void add_principal(Families& all, const std::string& principal, const PrincipalValues& values) {
  const Labels labels = {{"principal", principal}};
  const auto count = [&](const char* name, MetricType type, const char* help, uint64_t value) {
    all.add(name, type, help, static_cast<double>(value), labels);
  };
  count("teletensor_sessions", kGauge, "Open sessions.", values.sessions);
  count("teletensor_sessions_opened_total", kCounter, "Sessions since the engine's start.", values.opened);
  count("teletensor_tensor_bytes", kGauge, "Bytes of the tensors that the sessions hold, on all devices.",
        values.bytes);
  all.add("teletensor_cpu_seconds_total", kCounter, "Processor time of the turns of a principal's sessions.",
          values.cpu_seconds, labels);
  if (values.memory_limit != 0) {
    count("teletensor_memory_limit_bytes", kGauge, "Limit of the memory of a principal's sessions.",
          values.memory_limit);
  }
  count("teletensor_handles", kGauge, "Handles that the sessions hold.", values.handles);
  count("teletensor_frames_total", kCounter, "Executed frames.", values.frames);
  count("teletensor_instructions_total", kCounter, "Executed instructions.", values.instructions);
  count("teletensor_failed_instructions_total", kCounter, "Instructions with an error of their own.", values.failed);
}

void add_workers(Families& all, const Workers& workers) {
  const v1::StatusReply status = status_of(workers);
  for (const v1::WorkerStatus& each : status.workers()) {
    const Labels labels = {{"principal", each.principal()}};
    all.add("teletensor_worker_up", kGauge, "Whether the worker of a principal answers.", each.answers() ? 1 : 0,
            labels);
    all.add("teletensor_worker_resident_bytes", kGauge, "Resident memory of a principal's worker.",
            static_cast<double>(each.resident_bytes()), labels);
  }
  for (const v1::DeviceStatus& each : status.devices()) {
    add_device(all, to_string(decode_device(each.device().device())), each.memory().allocated(),
               each.memory().reserved(), each.memory().limit(), each.memory().out_of_memory());
  }
  for (const v1::PrincipalStatus& each : status.principals()) {
    add_principal(all, each.name(),
                  {each.sessions(), each.sessions_opened(), each.held_bytes(), each.memory_limit(), each.handles(),
                   each.frames(), each.instructions(), each.failed(), each.cpu_seconds()});
  }
}

}  // namespace

std::string Metrics::text() const {
  Families all;
  all.add("teletensor_info", kGauge, "Always 1; the engine's version is a label.", 1, {{"version", kVersion}});
  const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - started_;
  all.add("teletensor_uptime_seconds", kGauge, "Time since the engine's start.", uptime.count());
  all.add("teletensor_resident_bytes", kGauge, "Resident memory of the engine's process.",
          static_cast<double>(resident_bytes()));
  const std::vector<DeviceInfo> devices = workers_ == nullptr ? Devices::instance().list() : std::vector<DeviceInfo>();
  for (const DeviceInfo& info : devices) {
    const AllocatorStats stats = Devices::instance().allocator(info.device).stats();
    add_device(all, to_string(info.device), stats.all.requested.now, stats.all.reserved.now, stats.limit,
               stats.out_of_memory);
  }
  for (const auto& [principal, usage] : sessions_.usage()) {
    add_principal(
        all, principal,
        {usage.sessions, usage.opened, usage.bytes, usage.quota ? usage.quota->limits().memory : 0, usage.handles,
         usage.frames, usage.instructions, usage.failed, std::chrono::duration<double>(usage.share->used()).count()});
  }
  if (workers_ != nullptr) {
    add_workers(all, *workers_);
    return all.text();  // frames are executed, and timed, elsewhere
  }
  all.add("teletensor_frame_wait_seconds", "Time from the receipt of a frame to its execution.", times_.waiting);
  all.add("teletensor_frame_seconds", "Time of executing a frame and preparing its reply.", times_.executing);
  return all.text();
}

}  // namespace tt::server
