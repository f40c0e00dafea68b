// Batcher: joins requests of different clients into batches, for the instances of a model.
//
// The thread of each request waits in run(). A request that finds an idle instance and need not wait, or completes a
// batch, executes it on its own thread, without a switch to another one, if batches take a short time: loops of long
// ones use several cores, whose threads stay awake only if the same thread runs all batches. When that thread is done
// and others wait, one of the batcher's own threads continues, and goes from one batch to the next while any is
// complete or has waited for long enough: an instance is then never idle until a request's thread wakes up, and the
// answers of a batch are not delayed by the next one. There is at most one such thread per instance, started at the
// first use. The threads of a batch's requests wake each other up, two each, so that the thread that has executed it
// wakes up two: 32 would take it a millisecond, for which the instance would be idle. Requests are queued by priority,
// then in the order of their arrival. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"

namespace tt::server {

class Batcher {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    size_t instances = 1;           // batches that run at a time
    size_t max_rows = 1;            // of a batch; a request with more rows is refused by the caller
    std::vector<size_t> preferred;  // numbers of rows at which a batch does not wait for more, ascending
    size_t enough_rows = 0;         // with which a batch does not wait for more; 0: there is no such number
    Clock::duration max_delay{};    // for which the first request of a batch waits for others
    size_t levels = 1;              // of priority, the first one precedes the others
    size_t max_queue = 0;           // requests that wait; 0: no limit
    bool delays = false;  // a request that has waited for too long waits behind all others, instead of failing
  };

  // A request. The derived object has what `execute` needs.
  struct Job {
    virtual ~Job() = default;
    // Set by the caller.
    std::string key;  // only requests of one key share a batch; empty: shares none
    size_t rows = 1;
    size_t level = 0;                                       // below Options::levels
    Clock::time_point give_up = Clock::time_point::max();   // fails if it still waits then
    Clock::time_point deadline = Clock::time_point::max();  // the same, also if Options::delays
    // Whether its caller has gone. Called every 50 ms by one thread at a time; may be empty.
    std::function<bool()> is_cancelled;
    // Set by `execute`.
    absl::Status status;
    // Set by run().
    Clock::duration queued{};
    size_t batch_rows = 0;  // of the batch in which it has run; 0: it has not run
    bool is_first = false;  // of its batch

   private:
    friend class Batcher;
    enum class State : uint8_t { kQueued, kTaken, kDone } state_ = State::kQueued;
    bool is_delayed_ = false;
    Clock::time_point arrived_;
    // Notified without the lock, when the job may have ended already.
    std::shared_ptr<CondVar> changed_ = std::make_shared<CondVar>();
    std::vector<std::shared_ptr<CondVar>> wakes_;  // of other requests of its batch, when it is done
  };

  // Executes a batch on an instance, numbered from 0, and sets the status of each request. Must not throw. Several
  // threads call it, for different instances.
  using Execute = std::function<void(size_t instance, absl::Span<Job* const> batch)>;

  Batcher(Options options, Execute execute);
  ~Batcher();  // requires that run() has returned everywhere

  // Waits until the request has run, and returns its status. RESOURCE_EXHAUSTED if too many requests wait,
  // DEADLINE_EXCEEDED if it has waited for too long, CANCELLED, or UNAVAILABLE after stop().
  absl::Status run(Job& job);
  // Refuses requests from now on, those that wait too.
  void stop();
  size_t queued() const;
  const Options& options() const { return options_; }

 private:
  using Jobs = std::deque<Job*>;
  struct Plan {
    std::vector<Job*> batch;
    Clock::time_point ready;  // when it may start
  };

  Job* head() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remove(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void wake_head() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Plan plan(Clock::time_point now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `own` is the request of this thread; null: it has none.
  void execute(const std::vector<Job*>& batch, const Job* own) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes one of the batcher's threads continue with the queue, or the first request's if its batch may not start yet.
  // Returns whether a thread of the batcher will look at the queue.
  bool hand_over() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Executes a batch that may start on this thread, that of the request `own`, or makes a thread of the batcher do it.
  void start(const std::vector<Job*>& batch, const Job& own) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_queue();
  // Executes batches until a request of the queue is done, or has left it with a status.
  void run_queued(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the request's turn or end. Returns false if it has left the queue with a status.
  bool wait(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Execute execute_;
  mutable Mutex mutex_;
  std::vector<Jobs> queues_ ABSL_GUARDED_BY(mutex_);  // by level; the last one has requests that are delayed
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<size_t> idle_ ABSL_GUARDED_BY(mutex_);  // instances
  Clock::duration mean_ ABSL_GUARDED_BY(mutex_){};    // of the times of batches, mostly of the last ones
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar work_;                                              // for run_queue()
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);  // of run_queue()
  size_t resting_ ABSL_GUARDED_BY(mutex_) = 0;                // of them, which wait for work
};

}  // namespace tt::server
