// Tracer: the engine's finished spans, from the threads that finish them to the exporter.
//
// An engine without --otlp has no Tracer: its users test a pointer that never changes, and nothing else. With one,
// add() takes a lock for the time of an append and wakes the exporter at most twice per batch; it never waits for a
// collector. Clients cause spans, so their number and size are limited: at most kMaxQueued spans wait, others are
// dropped and counted, and each kind of span has a rate (SpanRate). Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "server/trace/trace_context.h"

namespace tt::server {

// A finished piece of work. Text is cut to Tracer::kMaxText bytes of valid UTF-8 by attribute().
struct Span {
  using Value = std::variant<int64_t, double, std::string>;
  const char* name = "";     // static
  bool from_client = false;  // the client's request, rather than a part of another span of the engine
  TraceContext context;
  std::optional<std::array<char, 8>> parent;  // span in the same trace
  std::optional<TraceContext> link;           // a related span, perhaps of another trace
  uint64_t start = 0, end = 0;                // nanoseconds since 1970
  bool failed = false;
  absl::InlinedVector<std::pair<const char*, Value>, 8> attributes;  // keys are static

  void attribute(const char* key, absl::string_view text);
  void attribute(const char* key, uint64_t value) { attributes.emplace_back(key, static_cast<int64_t>(value)); }
  void seconds(const char* key, uint64_t nanoseconds) {
    attributes.emplace_back(key, static_cast<double>(nanoseconds) * 1e-9);
  }
  // Sets `end` to the present, and `start` so long before it.
  void ended_now(std::chrono::nanoseconds duration);
};

// Limits spans of one kind: a burst, then a number per second. Not thread-safe.
class SpanRate {
 public:
  SpanRate(int burst, int per_second) : burst_(burst), per_second_(per_second), left_(burst) {}
  bool allow();

 private:
  using Clock = std::chrono::steady_clock;
  const double burst_, per_second_;
  double left_;
  Clock::time_point refilled_ = Clock::now();
};

class Tracer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMaxQueued = 2048, kMaxBatch = 256, kMaxText = 256;
  static constexpr std::chrono::milliseconds kBatchTime{500};  // that a span waits for others

  struct Options {
    double ratio = 0.01;                           // of the frames without a client's trace context that are exported
    std::chrono::nanoseconds slow{1'000'000'000};  // frames that take longer are exported in any case
  };
  explicit Tracer(Options options) : options_(options) {}
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  const Options& options() const { return options_; }
  // Whether a piece of work without a client's context is sampled. `number` identifies it.
  bool samples(uint64_t number) const;
  // Whether another span of a session, or of an administrative call, is within the rate of such spans. Counts a dropped
  // span if it is not.
  bool allow_call();

  enum class Dropped {
    kRate,
    kQueue,
    kFailed,
    kRejected
  };  // by the rate, a full queue, a failed export, the collector
  static constexpr size_t kReasons = 4;
  static const char* reason_name(Dropped reason);  // "rate", "queue"

  void add(Span span);
  // Waits until there are kMaxBatch spans, or the first one has waited for kBatchTime, or close() was called. Returns
  // at most kMaxBatch spans; none only after close().
  std::vector<Span> take();
  // Makes take() return at once. Spans that are added later are dropped.
  void close();
  void drop(Dropped reason, uint64_t count) { dropped_[static_cast<size_t>(reason)].fetch_add(count, kRelaxed); }
  void exported(uint64_t count) { exported_.fetch_add(count, kRelaxed); }

  // Totals since the start.
  uint64_t exported() const { return exported_.load(kRelaxed); }
  uint64_t dropped(Dropped reason) const { return dropped_[static_cast<size_t>(reason)].load(kRelaxed); }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Span> spans_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point first_ ABSL_GUARDED_BY(mutex_);  // when the first of them was added
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  SpanRate calls_ ABSL_GUARDED_BY(mutex_){500, 100};
  std::atomic<uint64_t> exported_{0};
  std::array<std::atomic<uint64_t>, kReasons> dropped_{};
};

}  // namespace tt::server
