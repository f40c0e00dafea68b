// SessionTrace: the spans of one session: the session itself, and those of its frames that are sampled or slow.
//
// Owned by its Session, and used only by an engine with --otlp. The session's span is in the trace of the client's
// Hello, or in a new one, and is exported when the session ends. A frame with a client's trace context is exported if
// the client samples it, as a child of the client's span with a link to the session's; a frame without one with the
// probability Tracer::Options::ratio, as a child of the session's. Slow frames are exported in any case, within a rate.
// frame() is called by the thread that executes the frame, one at a time; end() once, after the last frame.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "proto/wire.h"
#include "server/trace/tracer.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

class SessionTrace {
 public:
  // `traceparent` is the client's and may be anything.
  SessionTrace(std::shared_ptr<Tracer> tracer, absl::string_view traceparent, uint64_t session, std::string principal,
               std::string address);

  // What a frame took. Times are in nanoseconds.
  struct FrameWork {
    uint64_t duration = 0;  // of its execution, its reply included
    uint64_t waited = 0;    // from its receipt to its execution
    uint64_t queued = 0;    // for a turn
    uint64_t bytes = 0;     // on the wire
    uint64_t failed = 0;    // instructions with an error of their own
  };
  void frame(const v1::Frame& frame, const v1::Reply& reply, const FrameWork& work);
  void end(const v1::SessionStatus& status);

 private:
  void describe(Span* span) const;

  const std::shared_ptr<Tracer> tracer_;
  const uint64_t session_;
  const std::string principal_, address_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const std::optional<TraceContext> caller_;  // of Hello
  std::optional<TraceContext> context_;       // the session's span; empty: it is not exported
  SpanRate frames_{100, 20};
  std::atomic<bool> ended_{false};
};

}  // namespace tt::server
