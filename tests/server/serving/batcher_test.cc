// Batches: which requests share one, in which order they run, and which are refused.
#include "server/serving/scheduler/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;  // NOLINT

struct Request final : Batcher::Job {
  explicit Request(std::string name, size_t rows = 1, std::string key = "k", size_t level = 0) : name(std::move(name)) {
    this->key = std::move(key);
    this->rows = rows;
    this->level = level;
  }
  const std::string name;
};

// A batcher whose batches can be held, and the requests' threads.
class Batches {
 public:
  explicit Batches(Batcher::Options options)
      : batcher(std::move(options), [this](size_t, absl::Span<Batcher::Job* const> batch) { execute(batch); }) {}
  ~Batches() {
    release();
    for (std::thread& thread : threads_) thread.join();
  }

  // Starts a request, and returns once it waits or runs.
  Request& start(std::unique_ptr<Request> request) {
    requests_.push_back(std::move(request));
    Request& started = *requests_.back();
    const size_t before = seen();
    threads_.emplace_back([this, &started] { batcher.run(started).IgnoreError(); });
    testing::wait_until([&] { return seen() > before; });
    return started;
  }
  void hold() {
    MutexLock lock(mutex_);
    held_ = true;
  }
  void release() {
    MutexLock lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::vector<std::string> batches() {
    MutexLock lock(mutex_);
    return batches_;
  }

  std::vector<std::thread::id> executors() {
    MutexLock lock(mutex_);
    return executors_;
  }

  Batcher batcher;

 private:
  size_t seen() {
    MutexLock lock(mutex_);
    return taken_ + batcher.queued();
  }
  void execute(absl::Span<Batcher::Job* const> batch) {
    MutexLock lock(mutex_);
    std::string names;
    for (Batcher::Job* job : batch) names += static_cast<Request*>(job)->name;
    batches_.push_back(names);
    executors_.push_back(std::this_thread::get_id());
    taken_ += batch.size();
    while (held_) changed_.wait(mutex_);
  }

  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> batches_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread::id> executors_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::thread> threads_;
};

std::unique_ptr<Request> make(const std::string& name, size_t rows = 1, const std::string& key = "k",
                              size_t level = 0) {
  return std::make_unique<Request>(name, rows, key, level);
}

TEST(Batcher, RunsARequestAtOnceIfAnInstanceIsIdle) {
  Batches all({.max_rows = 8});
  Request request("a");
  EXPECT_TRUE(all.batcher.run(request).ok());
  EXPECT_EQ(request.batch_rows, 1u);
  EXPECT_TRUE(request.is_first);
}

TEST(Batcher, KeepsItsInstanceIfExecutionThrows) {
  int calls = 0;
  Batcher batcher({.max_rows = 8}, [&](size_t, absl::Span<Batcher::Job* const>) {
    if (++calls == 1) throw std::bad_alloc();
  });
  Request failed("a"), good("b");
  EXPECT_EQ(batcher.run(failed).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(batcher.run(good).ok());
}

TEST(Batcher, JoinsWhatWaitsUpToTheMaximum) {
  Batches all({.max_rows = 4});
  all.hold();
  all.start(make("a"));
  all.start(make("b", 2));
  all.start(make("c"));
  Request& d = all.start(make("d", 3));  // does not fit
  all.start(make("e"));                  // must not overtake d
  all.release();
  all.join();
  EXPECT_THAT(all.batches(), ElementsAre("a", "bc", "de"));
  EXPECT_EQ(d.batch_rows, 4u);
}

// Requests of a batch wake each other up.
TEST(Batcher, AllRequestsOfALargeBatchAreAnswered) {
  for (const size_t count : {2, 3, 4, 7, 50}) {
    Batches all({.max_rows = 64});
    all.hold();
    all.start(make("a"));
    for (size_t i = 0; i < count; ++i) all.start(make("b"));
    all.release();
    all.join();
    EXPECT_THAT(all.batches(), ElementsAre("a", std::string(count, 'b')));
  }
}

// On the threads of requests and on the batcher's own, with several instances.
TEST(Batcher, ManyClientsAreAnswered) {
  std::atomic<size_t> executed{0};
  Batcher batcher({.instances = 2, .max_rows = 8}, [&](size_t, absl::Span<Batcher::Job* const> batch) {
    executed += batch.size();
    if (executed % 5 == 0) std::this_thread::sleep_for(300us);
  });
  constexpr size_t kClients = 24, kRequests = 200;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      for (size_t k = 0; k < kRequests; ++k) {
        Request request("a");
        EXPECT_TRUE(batcher.run(request).ok());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(executed, kClients * kRequests);
}

TEST(Batcher, ContinuesWithTheQueueOnOneThread) {
  Batches all({.max_rows = 1});
  all.hold();
  for (const char* name : {"a", "b", "c"}) all.start(make(name));
  all.release();
  all.join();
  const std::vector<std::thread::id> executors = all.executors();
  EXPECT_THAT(all.batches(), ElementsAre("a", "b", "c"));
  EXPECT_NE(executors[0], executors[1]);
  EXPECT_EQ(executors[1], executors[2]);
}

TEST(Batcher, LongBatchesRunOnOneThread) {
  std::vector<std::thread::id> executors;
  Batcher batcher({.max_rows = 8}, [&](size_t, absl::Span<Batcher::Job* const>) {
    executors.push_back(std::this_thread::get_id());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  for (int i = 0; i < 4; ++i) {
    Batcher::Job job;
    EXPECT_TRUE(batcher.run(job).ok());
  }
  EXPECT_EQ(executors[0], std::this_thread::get_id());  // its time was not known
  EXPECT_NE(executors[1], std::this_thread::get_id());
  EXPECT_EQ(executors[1], executors[2]);
  EXPECT_EQ(executors[2], executors[3]);
}

TEST(Batcher, JoinsOnlyRequestsOfOneKey) {
  Batches all({.max_rows = 8});
  all.hold();
  all.start(make("a"));
  all.start(make("b", 1, "x"));
  all.start(make("c", 1, "y"));
  all.start(make("d", 1, "x"));
  all.start(make("e", 1, ""));
  all.start(make("f", 1, ""));
  all.release();
  all.join();
  EXPECT_THAT(all.batches(), ElementsAre("a", "bd", "c", "e", "f"));
}

TEST(Batcher, RunsHigherPrioritiesFirst) {
  Batches all({.max_rows = 1, .levels = 3});
  all.hold();
  all.start(make("a", 1, "k", 2));
  all.start(make("b", 1, "k", 2));
  all.start(make("c", 1, "k", 0));
  all.start(make("d", 1, "k", 1));
  all.start(make("e", 1, "k", 0));
  all.release();
  all.join();
  EXPECT_THAT(all.batches(), ElementsAre("a", "c", "e", "d", "b"));
}

TEST(Batcher, WaitsForOthersUntilTheBatchIsComplete) {
  Batches all({.max_rows = 3, .max_delay = 60s});
  all.start(make("a"));
  all.start(make("b"));
  EXPECT_EQ(all.batcher.queued(), 2u);
  all.start(make("c"));
  all.join();
  EXPECT_THAT(all.batches(), ElementsAre("abc"));
}

TEST(Batcher, DoesNotWaitWithAPreferredNumberOfRows) {
  Batches all({.max_rows = 8, .preferred = {2, 4}, .max_delay = 60s});
  all.start(make("a"));
  all.start(make("b"));
  all.join();
  EXPECT_THAT(all.batches(), ElementsAre("ab"));
}

TEST(Batcher, RunsAnIncompleteBatchAfterTheDelay) {
  Batches all({.max_rows = 8, .max_delay = 30ms});
  all.start(make("a"));
  all.start(make("b"));
  all.join();
  EXPECT_FALSE(all.batches().empty());
}

TEST(Batcher, RunsOneBatchPerInstance) {
  Batches all({.instances = 2, .max_rows = 1});
  all.hold();
  all.start(make("a"));
  all.start(make("b"));
  all.start(make("c"));
  testing::wait_until([&] { return all.batches().size() == 2; });
  EXPECT_EQ(all.batcher.queued(), 1u);
  all.release();
  all.join();
  EXPECT_EQ(all.batches().size(), 3u);
}

TEST(Batcher, RefusesRequestsIfTheQueueIsFull) {
  Batches all({.max_rows = 1, .max_queue = 2});
  all.hold();
  all.start(make("a"));
  all.start(make("b"));
  all.start(make("c"));
  Request refused("d");
  const absl::Status status = all.batcher.run(refused);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("at most 2 requests"));
  EXPECT_EQ(refused.batch_rows, 0u);
}

TEST(Batcher, EndsRequestsThatWaitForTooLong) {
  Batches all({.max_rows = 1});
  all.hold();
  all.start(make("a"));
  Request late("b");
  late.give_up = Batcher::Clock::now() + 20ms;
  EXPECT_EQ(all.batcher.run(late).code(), absl::StatusCode::kDeadlineExceeded);
  Request cancelled("c");
  cancelled.is_cancelled = [] { return true; };
  EXPECT_EQ(all.batcher.run(cancelled).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(all.batcher.queued(), 0u);
  all.release();
  all.join();
  EXPECT_THAT(all.batches(), ElementsAre("a"));
}

TEST(Batcher, DelaysRequestsInsteadOfEndingThem) {
  Batches all({.max_rows = 1, .delays = true});
  all.hold();
  all.start(make("a"));
  auto late = make("b");
  late->give_up = Batcher::Clock::now();
  all.start(std::move(late));
  all.start(make("c"));
  all.release();
  all.join();
  EXPECT_THAT(all.batches(), ElementsAre("a", "c", "b"));
}

TEST(Batcher, RefusesRequestsAfterStop) {
  Batches all({.max_rows = 1});
  all.hold();
  all.start(make("a"));
  Request& waiting = all.start(make("b"));
  all.batcher.stop();
  Request late("c");
  EXPECT_EQ(all.batcher.run(late).code(), absl::StatusCode::kUnavailable);
  all.release();
  all.join();
  EXPECT_EQ(waiting.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(all.batches(), ElementsAre("a"));
}

}  // namespace
}  // namespace tt::server
