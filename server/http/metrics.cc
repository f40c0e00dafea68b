#include "server/http/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "engine/extension/library.h"
#include "server/convert.h"
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
  void add(const char* name, const char* help, const FrameTimes::Histogram& histogram, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
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
  // Of values of which `counts` has how often each occurred. Bounds are powers of two up to 1024.
  void add(const char* name, const char* help, const std::map<uint64_t, uint64_t>& counts, Labels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    uint64_t below = 0;
    double sum = 0;
    auto next = counts.begin();
    for (uint64_t bound = 1; bound <= 1024; bound *= 2) {
      for (; next != counts.end() && next->first <= bound; ++next) below += next->second;
      metric.histogram.bucket.push_back({below, static_cast<double>(bound)});
    }
    for (; next != counts.end(); ++next) below += next->second;
    for (const auto& [value, count] : counts) sum += static_cast<double>(value) * static_cast<double>(count);
    metric.histogram.bucket.push_back({below, std::numeric_limits<double>::infinity()});
    metric.histogram.sample_count = below;
    metric.histogram.sample_sum = sum;
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

// With MIG, and where the driver does not report a value, its sample is absent.
void add(const GpuMonitor::Gpu& gpu, Families& all) {
  const Labels labels = {{"gpu", std::to_string(gpu.index)}, {"name", gpu.name}, {"uuid", gpu.uuid}};
  if (gpu.utilization) {
    all.add("teletensor_gpu_utilization_ratio", MetricType::Gauge,
            "Part of the last period in which a kernel of any process ran on the GPU, 0 to 1 (NVML).", *gpu.utilization,
            labels);
  }
  const auto memory = [&](const char* kind, std::optional<uint64_t> bytes) {
    if (!bytes) return;
    Labels with_kind = labels;
    with_kind.push_back({"kind", kind});
    all.add("teletensor_gpu_memory_bytes", MetricType::Gauge,
            "Memory of a GPU: used by all processes together, and in total (NVML).", static_cast<double>(*bytes),
            std::move(with_kind));
  };
  memory("used", gpu.used_bytes);
  memory("total", gpu.total_bytes);
}

constexpr MetricType kGauge = MetricType::Gauge, kCounter = MetricType::Counter;

std::string name_of(const v1::DeviceStatus& status) {
  const int64_t number = status.device().device();
  if (status.device().type_name().empty()) return to_string(decode_device(number));
  return absl::StrCat(status.device().type_name(), ":", number & 0xff);  // of a worker, whose types have names there
}

void add(const v1::DeviceStatus& status, Families& all) {
  const std::string device = name_of(status);
  const auto bytes = [&](const char* kind, uint64_t value) {
    all.add("teletensor_device_memory_bytes", kGauge,
            "Memory of a device: requested for tensors, reserved from the system, and the limit (0: none).",
            static_cast<double>(value), {{"device", device}, {"kind", kind}});
  };
  bytes("allocated", status.memory().allocated());
  bytes("reserved", status.memory().reserved());
  bytes("limit", status.memory().limit());
  all.add("teletensor_out_of_memory_total", kCounter, "Requests for memory of a device that failed.",
          static_cast<double>(status.memory().out_of_memory()), {{"device", device}});
}

void add_plugin(const v1::DeviceStatus& status, Families& all) {
  add(status, all);
  const auto add_calls = [&](const char* by, uint64_t calls) {
    all.add("teletensor_device_calls_total", kCounter,
            "Calls on a device of a device library, by what executed them: a kernel of the library, or the CPU.",
            static_cast<double>(calls), {{"device", name_of(status)}, {"by", by}});
  };
  add_calls("kernel", status.kernel_calls());
  add_calls("cpu", status.fallback_calls());
}

void add(const v1::PrincipalStatus& status, Families& all) {
  const Labels labels = {{"principal", status.name()}};
  const auto add = [&](const char* name, MetricType type, const char* help, auto value) {
    all.add(name, type, help, static_cast<double>(value), labels);
  };
  add("teletensor_sessions", kGauge, "Open sessions.", status.sessions());
  add("teletensor_sessions_opened_total", kCounter, "Sessions since the engine's start.", status.sessions_opened());
  add("teletensor_tensor_bytes", kGauge,
      "Bytes of the tensors that the sessions hold, on all devices; with a limit also of those that outlive them.",
      status.held_bytes());
  add("teletensor_cpu_seconds_total", kCounter, "Processor time of the turns of a principal's sessions.",
      status.cpu_seconds());
  add("teletensor_offloaded_bytes", kGauge, "Bytes of the tensors of idle sessions that have left their device.",
      status.offloaded_bytes());
  if (status.memory_limit() != 0) {
    add("teletensor_memory_limit_bytes", kGauge, "Limit of the memory of a principal's sessions.",
        status.memory_limit());
  }
  add("teletensor_handles", kGauge, "Handles that the sessions hold.", status.handles());
  add("teletensor_frames_total", kCounter, "Executed frames.", status.frames());
  add("teletensor_instructions_total", kCounter, "Executed instructions.", status.instructions());
  add("teletensor_failed_instructions_total", kCounter, "Instructions with an error of their own.", status.failed());
}

void add(const char* direction, const FrameTimes::Transfers& transfers, Families& all) {
  const auto ended = [&](const char* outcome, const std::atomic<uint64_t>& count) {
    all.add("teletensor_transfers_total", kCounter,
            "Calls that transferred the bytes of a tensor, those through shared memory included, by how they ended.",
            static_cast<double>(count.load(std::memory_order_relaxed)),
            {{"direction", direction}, {"outcome", outcome}});
  };
  ended("complete", transfers.complete);
  ended("broken", transfers.broken);
  all.add("teletensor_transfer_bytes_total", kCounter, "Bytes of tensors that these calls transferred, uncompressed.",
          static_cast<double>(transfers.bytes.load(std::memory_order_relaxed)), {{"direction", direction}});
}

void add_errors(const FrameTimes& times, Families& all) {
  static_assert(FrameTimes::kErrorKinds == v1::ErrorKind_ARRAYSIZE);
  for (size_t kind = 0; kind < FrameTimes::kErrorKinds; ++kind) {
    const std::string code = kind == 0 ? "other" : absl::AsciiStrToLower(v1::ErrorKind_Name(static_cast<int>(kind)));
    all.add("teletensor_errors_total", kCounter,
            "Errors that were sent to clients, by code; one that is read several times counts each time.",
            static_cast<double>(times.errors[kind].load(std::memory_order_relaxed)), {{"code", code}});
  }
}

void add(const v1::OffloadStatus& status, Families& all) {
  all.add("teletensor_offload_file_bytes", kGauge, "Bytes of the files in --offload-dir.",
          static_cast<double>(status.file_bytes()));
  const auto moves = [&](const char* direction, uint64_t count) {
    all.add("teletensor_offload_moves_total", kCounter, "How often tensors of an idle session have left and returned.",
            static_cast<double>(count), {{"direction", direction}});
  };
  moves("out", status.left());
  moves("back", status.returned());
  all.add("teletensor_offload_failures_total", kCounter, "Moves of tensors of idle sessions that failed.",
          static_cast<double>(status.failures()));
}

void add(const v1::WorkerStatus& status, Families& all) {
  const Labels labels = {{"principal", status.principal()}};
  all.add("teletensor_worker_up", kGauge, "Whether the worker of a principal answers.", status.answers() ? 1 : 0,
          labels);
  if (!status.answers()) return;
  all.add("teletensor_worker_resident_bytes", kGauge, "Resident memory of a principal's worker.",
          static_cast<double>(status.resident_bytes()), labels);
}

void add(const ModelVersion& version, Families& all) {
  const Labels labels = {{"model", version.name()}, {"version", std::to_string(version.number())}};
  const ModelStatistics& statistics = version.statistics();
  const ModelStatistics::Totals totals = statistics.totals();
  const auto requests = [&](const char* outcome, uint64_t count) {
    Labels with_outcome = labels;
    with_outcome.push_back({"outcome", outcome});
    all.add("teletensor_model_requests_total", kCounter, "Inference requests that have ended.",
            static_cast<double>(count), std::move(with_outcome));
  };
  requests("success", totals.succeeded);
  requests("failure", totals.failed);
  all.add("teletensor_model_queued_requests", kGauge, "Inference requests that wait.",
          static_cast<double>(version.queued()), labels);
  all.add("teletensor_model_memory_bytes", kGauge, "Bytes of a model's weights and of what its requests use now.",
          static_cast<double>(version.held_bytes()), labels);
  all.add("teletensor_model_batch_rows", "Rows of the batches that a model has run.", statistics.batch_sizes(), labels);
  all.add("teletensor_model_queue_seconds", "Time of a request before its batch began.", statistics.queue_times(),
          labels);
  all.add("teletensor_model_compute_seconds", "Time of the run of a request's batch.", statistics.compute_times(),
          labels);
  all.add("teletensor_model_request_seconds", "Time of a request in the server.", statistics.request_times(), labels);
  if (version.streaming() == nullptr) return;
  const StreamingModel::Counters counters = version.streaming()->counters();
  all.add("teletensor_model_generated_tokens_total", kCounter, "Tokens that a model has generated.",
          static_cast<double>(counters.tokens), labels);
  all.add("teletensor_model_prompt_tokens_total", kCounter, "Tokens of the prompts that a model has computed.",
          static_cast<double>(counters.prompt_tokens), labels);
  all.add("teletensor_model_generation_steps_total", kCounter, "Steps, each of which appends a token to sequences.",
          static_cast<double>(counters.steps), labels);
  all.add("teletensor_model_generations", kGauge, "Requests for which a model generates tokens now.",
          static_cast<double>(counters.running), labels);
  all.add("teletensor_model_waiting_generations", kGauge, "Requests that wait for a slot of a model's cache.",
          static_cast<double>(counters.waiting), labels);
}

void add(const ModelRepository& models, Families& all) {
  for (const ModelRepository::Entry& entry : models.index()) {
    all.add("teletensor_model_ready", kGauge, "Whether a version of a model serves.", entry.ready ? 1 : 0,
            {{"model", entry.name}, {"version", entry.version}});
  }
  for (const auto& version : models.all()) add(*version, all);
}

}  // namespace

std::string Metrics::text() const {
  Families all;
  const v1::StatusReply status = status_.complete();
  all.add("teletensor_info", kGauge, "Always 1; the engine's version is a label.", 1, {{"version", kVersion}});
  all.add("teletensor_uptime_seconds", kGauge, "Time since the engine's start.", status.uptime_seconds());
  all.add("teletensor_resident_bytes", kGauge, "Resident memory of the engine's process.",
          static_cast<double>(status.resident_bytes()));
  for (const v1::DeviceStatus& device : status.devices()) add(device, all);
  for (const v1::DeviceStatus& device : status.plugin_devices()) add_plugin(device, all);
  if (gpus_ != nullptr) {
    for (const GpuMonitor::Gpu& gpu : gpus_->gpus()) add(gpu, all);
  }
  if (status.has_offload()) add(status.offload(), all);
  for (const extension::OperatorLibrary& library : extension::loaded_libraries()) {
    all.add("teletensor_library_operators", kGauge, "Operators of a shared object of --operators.",
            static_cast<double>(library.operators.size()), {{"library", library.name}, {"path", library.path}});
  }
  size_t queued = 0;
  for (const v1::SessionStatus& session : status.sessions()) queued += session.queue_position() > 0;
  all.add("teletensor_queued_sessions", kGauge, "Sessions that wait for a turn.", static_cast<double>(queued));
  for (const v1::PrincipalStatus& principal : status.principals()) add(principal, all);
  for (const v1::WorkerStatus& worker : status.workers()) add(worker, all);
  if (tracer_ != nullptr) {
    all.add("teletensor_spans_exported_total", kCounter, "Spans that the OpenTelemetry collector has accepted.",
            static_cast<double>(tracer_->exported()));
    for (size_t i = 0; i < Tracer::kReasons; ++i) {
      const auto reason = static_cast<Tracer::Dropped>(i);
      all.add("teletensor_spans_dropped_total", kCounter,
              "Spans that were not exported: beyond the rate, the queue was full, the export failed, or the collector "
              "rejected them.",
              static_cast<double>(tracer_->dropped(reason)), {{"reason", Tracer::reason_name(reason)}});
    }
  }
  if (const ModelRepository* models = status_.models()) add(*models, all);
  if (times_ != nullptr) {
    all.add("teletensor_frame_wait_seconds", "Time from the receipt of a frame to its execution.", times_->waiting);
    add("upload", times_->uploads, all);
    add("download", times_->downloads, all);
    add_errors(*times_, all);
    all.add("teletensor_frame_seconds", "Time of executing a frame and preparing its reply.", times_->executing);
  }
  return all.text();
}

}  // namespace tt::server
