#include "server/trace/otlp_encode.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "base/text.h"
#include "server/version.h"

namespace tt::server {
namespace {

namespace otlp = opentelemetry::proto;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr char kScope[] = "teletensor";
constexpr int kDetailsField = 3;     // of google.rpc.Status
constexpr int kRetryDelayField = 1;  // of google.rpc.RetryInfo

template <typename Bytes>
std::string bytes(const Bytes& value) {
  return {value.data(), value.size()};
}

void set_value(const Span::Value& value, otlp::common::v1::AnyValue* wire) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    wire->set_int_value(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    wire->set_double_value(*real);
  } else {
    wire->set_string_value(std::get<std::string>(value));
  }
}

void encode(const Span& span, otlp::trace::v1::Span* wire) {
  wire->set_trace_id(bytes(span.context.trace));
  wire->set_span_id(bytes(span.context.span));
  if (span.parent) wire->set_parent_span_id(bytes(*span.parent));
  wire->set_flags(span.context.sampled ? 1 : 0);
  wire->set_name(span.name);
  wire->set_kind(span.from_client ? otlp::trace::v1::Span::SPAN_KIND_SERVER
                                  : otlp::trace::v1::Span::SPAN_KIND_INTERNAL);
  wire->set_start_time_unix_nano(span.start);
  wire->set_end_time_unix_nano(span.end);
  for (const auto& [key, value] : span.attributes) {
    otlp::common::v1::KeyValue* attribute = wire->add_attributes();
    attribute->set_key(key);
    set_value(value, attribute->mutable_value());
  }
  if (span.link) {
    otlp::trace::v1::Span::Link* link = wire->add_links();
    link->set_trace_id(bytes(span.link->trace));
    link->set_span_id(bytes(span.link->span));
  }
  if (span.failed) wire->mutable_status()->set_code(otlp::trace::v1::Status::STATUS_CODE_ERROR);
}

}  // namespace

otlp::collector::trace::v1::ExportTraceServiceRequest otlp_request() {
  otlp::collector::trace::v1::ExportTraceServiceRequest request;
  otlp::trace::v1::ResourceSpans* spans = request.add_resource_spans();
  const auto describe = [&](const char* key, const Span::Value& value) {
    otlp::common::v1::KeyValue* attribute = spans->mutable_resource()->add_attributes();
    attribute->set_key(key);
    set_value(value, attribute->mutable_value());
  };
  describe("service.name", "teletensord");
  describe("service.version", kVersion);
  if (const auto instance = new_span_context({})) {
    describe("service.instance.id", absl::BytesToHexString({instance->trace.data(), instance->trace.size()}));
  }
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) describe("host.name", valid_utf8(host));
  describe("process.pid", static_cast<int64_t>(getpid()));
  otlp::trace::v1::ScopeSpans* scope = spans->add_scope_spans();
  scope->mutable_scope()->set_name(kScope);
  scope->mutable_scope()->set_version(kVersion);
  return request;
}

void append_spans(const std::vector<Span>& spans, otlp::collector::trace::v1::ExportTraceServiceRequest* request) {
  otlp::trace::v1::ScopeSpans* scope = request->mutable_resource_spans(0)->mutable_scope_spans(0);
  for (const Span& span : spans) encode(span, scope->add_spans());
}

// Reads google.rpc's messages as unknown fields. protobuf does not contain them, and nothing else here needs gRPC's
// library that does.
std::optional<std::chrono::milliseconds> requested_pause(const std::string& status_details) {
  UnknownFieldSet status;
  if (!status.ParseFromString(status_details)) return {};
  for (int i = 0; i < status.field_count(); ++i) {
    const UnknownField& field = status.field(i);
    google::protobuf::Any detail;
    if (field.number() != kDetailsField || field.type() != UnknownField::TYPE_LENGTH_DELIMITED ||
        !detail.ParseFromString(field.length_delimited()) ||
        !absl::EndsWith(detail.type_url(), "/google.rpc.RetryInfo")) {
      continue;
    }
    UnknownFieldSet info;
    if (!info.ParseFromString(detail.value())) return {};
    google::protobuf::Duration delay;  // absent: at once
    for (int j = 0; j < info.field_count(); ++j) {
      const UnknownField& value = info.field(j);
      if (value.number() != kRetryDelayField || value.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
      if (!delay.ParseFromString(value.length_delimited())) return {};
    }
    const int64_t seconds = std::clamp<int64_t>(delay.seconds(), 0, 86'400);
    return std::chrono::milliseconds(seconds * 1000 + std::clamp(delay.nanos(), 0, 999'999'999) / 1'000'000);
  }
  return {};
}

}  // namespace tt::server
