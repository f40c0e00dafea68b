// Scheduler: generates tokens for many requests at a time with one Decoder.
//
// Requests wait in a queue of limited length until a slot of the decoder's cache is free. They join and leave the batch
// between two steps: a new request's prompt is computed (at most one between two steps while others generate, so that
// their tokens are not delayed by a row of prompts), then every step appends one token to each sequence.
//
// Owns a thread, on which the decoder and the requests' sinks are called. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/serving/generation/decoder.h"
#include "server/serving/generation/sampling.h"

namespace tt::server::generation {

struct Request {
  std::vector<int64_t> prompt;
  SamplingParameters sampling;
  int64_t max_tokens = 0;  // to generate, at least 1
  std::vector<int64_t> stop_tokens;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

enum class Finish : uint8_t { kNone, kStop, kLength, kCancelled, kError };
const char* name(Finish finish);  // "", "stop", "length", ...

// A token of a request, or its end without one: then `token` is -1.
struct Event {
  int64_t token = -1;
  int64_t index = 0;              // the number of the token among those generated
  Finish finish = Finish::kNone;  // of the last event: why it is the last
  absl::Status status;            // with kError
};

struct SchedulerCounters {
  uint64_t requests = 0;  // finished ones
  uint64_t tokens = 0;
  uint64_t prompt_tokens = 0;
  uint64_t steps = 0;
  size_t running = 0, waiting = 0;
};

class Scheduler {
 public:
  static constexpr size_t kMaxStopTokens = 64;

  // `max_waiting`: requests in the queue; more are refused. `prepare` is called once on the scheduler's thread before
  // the decoder is used; may be null.
  Scheduler(std::unique_ptr<Decoder> decoder, size_t max_waiting, std::function<void()> prepare = nullptr);
  // Ends all requests with kCancelled.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Called on the scheduler's thread for every token, and last with an event whose `finish` is not kNone. Must not
  // wait for long, because all sequences do. Returns false if nobody reads the tokens any more: the request then ends.
  // cancel() of a request that waits calls it on its own thread.
  using Sink = std::function<bool(const Event& event)>;
  // Returns a number for cancel(). INVALID_ARGUMENT if the request is invalid, RESOURCE_EXHAUSTED if the queue is full,
  // UNAVAILABLE if the scheduler ends. The sink is not called if this fails.
  absl::Status submit(Request request, Sink sink, uint64_t* number);
  // The request ends before its next token. Does nothing if it has ended.
  void cancel(uint64_t number);

  const DecoderLimits& limits() const { return limits_; }
  SchedulerCounters counters() const;

 private:
  struct Sequence {
    uint64_t number;
    Request request;
    Sink sink;
    int64_t slot = -1;
    int64_t length = 0;     // tokens in the cache
    int64_t generated = 0;  // tokens
    int64_t last = 0;       // the newest token, not in the cache yet
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };

  void run();
  absl::Status check_request(const Request& request) const;
  // Takes the next request from the queue if there is a free slot; waits for one if nothing runs. Returns false at the
  // end.
  bool admit();
  void begin(Sequence sequence);
  void step();
  // Draws the sequence's next token and passes it on. Returns whether the sequence goes on.
  bool append(Sequence& sequence, absl::Span<const float> logits);
  bool is_over(Sequence& sequence);
  void finish(Sequence& sequence, Finish finish, absl::Status status = absl::OkStatus());
  void release(const Sequence& sequence);

  const std::unique_ptr<Decoder> decoder_;
  const std::function<void()> prepare_;
  const DecoderLimits limits_;
  const size_t max_waiting_;

  mutable Mutex mutex_;
  CondVar wake_up_;
  std::deque<Sequence> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, std::shared_ptr<std::atomic<bool>>>> cancellable_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  SchedulerCounters counters_ ABSL_GUARDED_BY(mutex_);

  // Of the scheduler's thread.
  std::vector<Sequence> running_;
  std::set<int64_t> free_slots_;  // the smallest is taken first, because a step computes all slots up to the largest
  std::vector<int32_t> scratch_;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace tt::server::generation
