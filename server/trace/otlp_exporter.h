// OtlpExporter: sends the Tracer's spans to a collector over OTLP/gRPC, in batches.
//
// Owns one thread and a channel. An export has a deadline; an export that failed for a reason that may pass is repeated
// after growing pauses, or after the pause that the collector requests, as OTLP specifies, and given up after
// kAttempts. Meanwhile the Tracer's queue fills and drops: no other thread ever waits for the collector. Failures are
// logged once per minute. The collector is not trusted: its replies are limited in size and its texts are escaped.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "server/log.h"
#include "server/trace/tracer.h"

namespace tt::server {

// Where spans are sent.
struct OtlpEndpoint {
  std::string target;  // "collector:4317"
  bool tls = false;
  std::string authorities;  // PEM file of those who sign the collector's certificate; empty: the system's
};

// Parses "HOST:PORT", "http://HOST:PORT" or "https://HOST:PORT".
absl::StatusOr<OtlpEndpoint> parse_otlp_endpoint(absl::string_view text);

class OtlpExporter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kDeadline{10};  // of an export
  static constexpr int kAttempts = 5;
  static constexpr std::chrono::milliseconds kFirstPause{1'000}, kMaxPause{30'000};
  static constexpr std::chrono::minutes kMaxRequestedPause{10};

  // Starts exporting. Does not wait for the collector. `tracer` must outlive the exporter. FAILED_PRECONDITION if the
  // authorities cannot be read.
  static absl::StatusOr<std::unique_ptr<OtlpExporter>> start(const OtlpEndpoint& endpoint, Tracer& tracer);
  // Drops what shut_down() has not sent.
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  // Closes the tracer, exports its remaining spans without repetitions, and gives up after `timeout`. Returns when the
  // thread has ended. Idempotent.
  void shut_down(std::chrono::milliseconds timeout);

 private:
  using Request = opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
  using Response = opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
  using Service = opentelemetry::proto::collector::trace::v1::TraceService;

  OtlpExporter(const OtlpEndpoint& endpoint, std::shared_ptr<grpc::ChannelCredentials> credentials, Tracer& tracer);
  void run();
  // Sends a batch, repeatedly if necessary, and counts its spans as exported or dropped.
  void export_batch(const std::vector<Span>& batch);
  grpc::Status send(const Request& request, Response* response);
  // Returns false if the exporter shuts down meanwhile.
  bool pause(std::chrono::milliseconds duration);
  bool stopping() {
    MutexLock lock(mutex_);
    return stopping_;
  }

  const OtlpEndpoint endpoint_;
  Tracer& tracer_;
  const std::unique_ptr<Service::Stub> stub_;
  Request prototype_;  // with the resource, without spans
  LogLimit log_{1, std::chrono::minutes(1)};
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point give_up_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();  // once stopping_
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;                   // of the export in progress
  std::thread thread_;
};

}  // namespace tt::server
