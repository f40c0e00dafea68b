#include "server/session/session_trace.h"

#include <utility>

namespace tt::server {
namespace {

// The error that the client receives with the reply, as a name of v1::ErrorKind; "" if there is none.
absl::string_view error_of(const v1::Reply& reply) {
  const auto name = [](const v1::Error& error) -> absl::string_view { return v1::ErrorKind_Name(error.kind()); };
  if (reply.has_fault()) return name(reply.fault());
  if (reply.number_errors_size() != 0) return name(reply.number_errors(0).error());
  for (const v1::ReadResult& read : reply.reads()) {
    if (read.has_error()) return name(read.error());
  }
  return "";
}

}  // namespace

SessionTrace::SessionTrace(std::shared_ptr<Tracer> tracer, absl::string_view traceparent, uint64_t session,
                           std::string principal, std::string address)
    : tracer_(std::move(tracer)),
      session_(session),
      principal_(std::move(principal)),
      address_(std::move(address)),
      caller_(parse_traceparent(traceparent)) {
  if (!caller_ || caller_->sampled) context_ = new_span_context(caller_);
}

void SessionTrace::describe(Span* span) const {
  span->attribute("teletensor.session", session_);
  if (!principal_.empty()) span->attribute("teletensor.principal", principal_);
}

void SessionTrace::frame(const v1::Frame& frame, const v1::Reply& reply, const FrameWork& work) {
  std::optional<TraceContext> caller;
  if (!frame.traceparent().empty()) caller = parse_traceparent(frame.traceparent());
  const bool is_child = caller && caller->sampled;
  if (!is_child) {
    const bool is_slow = work.duration >= static_cast<uint64_t>(tracer_->options().slow.count());
    const bool is_sampled = !caller && tracer_->samples(session_ << 32 ^ frame.sequence());
    if (!context_ || !(is_slow || is_sampled)) return;
  }
  if (!frames_.allow()) return tracer_->drop(Tracer::Dropped::kRate, 1);
  const TraceContext& parent = is_child ? *caller : *context_;
  const std::optional<TraceContext> own = new_span_context(parent);
  if (!own) return tracer_->drop(Tracer::Dropped::kFailed, 1);
  Span span;
  span.name = "frame";
  span.context = *own;
  span.parent = parent.span;
  span.from_client = is_child;
  if (is_child) span.link = context_;
  describe(&span);
  span.attribute("teletensor.frame", frame.sequence());
  span.attribute("teletensor.instructions", static_cast<uint64_t>(frame.instructions_size()));
  span.attribute("teletensor.bytes", work.bytes);
  span.seconds("teletensor.wait_seconds", work.waited);
  span.seconds("teletensor.turn_wait_seconds", work.queued);
  if (work.failed != 0) span.attribute("teletensor.failed_instructions", work.failed);
  if (const absl::string_view error = error_of(reply); !error.empty()) span.attribute("error.type", error);
  span.failed = work.failed != 0 || reply.has_fault();
  span.ended_now(std::chrono::nanoseconds(work.duration));
  tracer_->add(std::move(span));
}

void SessionTrace::end(const v1::SessionStatus& status) {
  if (!context_ || ended_.exchange(true) || !tracer_->allow_call()) return;
  Span span;
  span.name = "session";
  span.from_client = true;
  span.context = *context_;
  if (caller_) span.parent = caller_->span;
  describe(&span);
  if (!address_.empty()) span.attribute("client.address", address_);
  span.attribute("teletensor.client", status.client());
  span.attribute("teletensor.frames", status.frames());
  span.attribute("teletensor.instructions", status.instructions());
  if (status.failed() != 0) span.attribute("teletensor.failed_instructions", status.failed());
  span.attribute("teletensor.peak_bytes", status.peak_bytes());
  span.attributes.emplace_back("teletensor.turn_wait_seconds", status.waited_seconds());
  span.ended_now(std::chrono::steady_clock::now() - started_);
  tracer_->add(std::move(span));
}

}  // namespace tt::server
