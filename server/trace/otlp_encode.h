// otlp_encode: spans as OTLP's messages, and the pause that a collector requests.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/trace/tracer.h"

namespace tt::server {

// Returns a request without spans that describes this process: service, version, host, process.
opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest otlp_request();
// Appends the spans to otlp_request().
void append_spans(const std::vector<Span>& spans,
                  opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest* request);
// Returns the delay of google.rpc.RetryInfo in the serialized google.rpc.Status of a failed call; empty if there is
// none.
std::optional<std::chrono::milliseconds> requested_pause(const std::string& status_details);

}  // namespace tt::server
