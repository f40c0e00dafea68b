// Tests of server/serving/generation without a model: sampling, and the scheduler with a decoder that counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "engine/schema/error.h"
#include "server/serving/generation/sampling.h"
#include "server/serving/generation/scheduler.h"

namespace tt::server::generation {
namespace {

int64_t draw(const std::vector<float>& logits, SamplingParameters parameters, uint64_t index = 0) {
  std::vector<int32_t> scratch;
  return sample(logits, parameters, index, &scratch);
}

TEST(Sampling, TakesTheMostProbableTokenAtTemperatureZero) { EXPECT_EQ(draw({0, 3, 3, -1}, {.temperature = 0}), 1); }

TEST(Sampling, FollowsTheProbabilities) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f), -INFINITY};
  std::map<int64_t, int> counts;
  for (uint64_t i = 0; i < 8000; ++i) ++counts[draw(logits, {.seed = 7}, i)];
  EXPECT_NEAR(counts[0], 1000, 150);
  EXPECT_NEAR(counts[1], 2000, 200);
  EXPECT_NEAR(counts[2], 5000, 250);
  EXPECT_EQ(counts[3], 0);
}

TEST(Sampling, KeepsOnlyProbableTokens) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f), std::log(2.0f)};
  for (uint64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(draw(logits, {.top_k = 1}, i), 2);
    const int64_t of_two = draw(logits, {.top_k = 2}, i);
    EXPECT_TRUE(of_two == 2 || of_two == 1);  // equal ones in the order of their numbers
    EXPECT_EQ(draw(logits, {.top_p = 0.4}, i), 2);
    EXPECT_NE(draw(logits, {.top_p = 0.85}, i), 0);
  }
}

TEST(Sampling, DependsOnSeedAndIndexOnly) {
  const std::vector<float> logits(100, 0.0f);
  std::vector<int64_t> a, b, other;
  for (uint64_t i = 0; i < 20; ++i) {
    a.push_back(draw(logits, {.seed = 1}, i));
    b.push_back(draw(logits, {.seed = 1}, i));
    other.push_back(draw(logits, {.seed = 2}, i));
  }
  EXPECT_EQ(a, b);
  EXPECT_NE(a, other);
}

TEST(Sampling, RejectsInvalidValues) {
  EXPECT_THROW(draw({}, {}), Error);
  EXPECT_THROW(draw({0, NAN}, {}), Error);
  EXPECT_THROW(draw({-INFINITY, -INFINITY}, {}), Error);
  EXPECT_THROW(check_sampling({.temperature = -1}), Error);
  EXPECT_THROW(check_sampling({.temperature = NAN}), Error);
  EXPECT_THROW(check_sampling({.top_k = -1}), Error);
  EXPECT_THROW(check_sampling({.top_p = 0}), Error);
}

// The token after `t` is (t + length of the prompt) modulo the vocabulary, with certainty.
class Counting final : public Decoder {
 public:
  explicit Counting(DecoderLimits limits) : limits_(limits), increments_(static_cast<size_t>(limits.slots)) {}
  DecoderLimits limits() const override { return limits_; }
  absl::Span<const float> prefill(int64_t slot, absl::Span<const int64_t> tokens) override {
    while (is_held) std::this_thread::yield();
    increments_[static_cast<size_t>(slot)] = static_cast<int64_t>(tokens.size());
    logits_.clear();
    add_row(slot, tokens.back());
    return logits_;
  }
  absl::Span<const float> step(absl::Span<const Next> next) override {
    largest = std::max<size_t>(largest, next.size());
    if (fails) throw Error(ErrorKind::kRuntime, "broken");
    if (lacks_memory) throw std::bad_alloc();
    logits_.clear();
    for (const Next& each : next) {
      EXPECT_LT(each.position, limits_.max_length);
      add_row(each.slot, each.token);
    }
    return logits_;
  }
  std::atomic<size_t> largest = 0;
  std::atomic<bool> fails = false, lacks_memory = false, is_held = false;

 private:
  void add_row(int64_t slot, int64_t token) {
    const size_t begin = logits_.size();
    logits_.resize(begin + static_cast<size_t>(limits_.vocabulary), -INFINITY);
    const int64_t next = (token + increments_[static_cast<size_t>(slot)]) % limits_.vocabulary;
    logits_[begin + static_cast<size_t>(next)] = 0;
  }
  const DecoderLimits limits_;
  std::vector<int64_t> increments_;
  std::vector<float> logits_;
};

// Collects the events of one request.
struct Collected {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int64_t> tokens;
  Event last;
  int64_t stop_reading_after = -1;

  Scheduler::Sink sink() {
    return [this](const Event& event) {
      const std::lock_guard lock(mutex);
      if (event.token >= 0) tokens.push_back(event.token);
      last = event;
      changed.notify_all();
      return stop_reading_after < 0 || static_cast<int64_t>(tokens.size()) < stop_reading_after;
    };
  }
  const Event& wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return last.finish != Finish::kNone; });
    return last;
  }
};

struct Fixture {
  explicit Fixture(DecoderLimits limits, size_t max_waiting = 100) {
    auto made = std::make_unique<Counting>(limits);
    decoder = made.get();
    scheduler = std::make_unique<Scheduler>(std::move(made), max_waiting);
  }
  Counting* decoder;
  std::unique_ptr<Scheduler> scheduler;
};

std::vector<int64_t> expected(std::vector<int64_t> prompt, int64_t count, int64_t vocabulary) {
  std::vector<int64_t> tokens;
  int64_t token = prompt.back();
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(token = (token + static_cast<int64_t>(prompt.size())) % vocabulary);
  return tokens;
}

TEST(Scheduler, GivesEveryRequestItsOwnTokens) {
  Fixture f({.slots = 4, .max_length = 64, .vocabulary = 11});
  f.decoder->is_held = true;
  std::vector<Collected> all(20);
  for (size_t i = 0; i < all.size(); ++i) {
    Request request{.prompt = std::vector<int64_t>(i % 5 + 1, static_cast<int64_t>(i % 11)),
                    .max_tokens = static_cast<int64_t>(i % 7 + 1)};
    uint64_t number;
    ASSERT_TRUE(f.scheduler->submit(std::move(request), all[i].sink(), &number).ok());
  }
  f.decoder->is_held = false;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].wait().finish, Finish::kLength);
    EXPECT_EQ(all[i].tokens, expected(std::vector<int64_t>(i % 5 + 1, static_cast<int64_t>(i % 11)),
                                      static_cast<int64_t>(i % 7 + 1), 11));
  }
  EXPECT_GT(f.decoder->largest, 1u);
  EXPECT_LE(f.decoder->largest, 4u);
  EXPECT_EQ(f.scheduler->counters().requests, all.size());
}

TEST(Scheduler, EndsAtStopTokensAndAtTheCachesEnd) {
  Fixture f({.slots = 2, .max_length = 8, .vocabulary = 100});
  Collected stopped, full;
  uint64_t number;
  Request request{.prompt = {5}, .max_tokens = 100, .stop_tokens = {8}};
  ASSERT_TRUE(f.scheduler->submit(request, stopped.sink(), &number).ok());
  EXPECT_EQ(stopped.wait().finish, Finish::kStop);
  EXPECT_EQ(stopped.tokens, (std::vector<int64_t>{6, 7, 8}));
  request.stop_tokens.clear();
  ASSERT_TRUE(f.scheduler->submit(request, full.sink(), &number).ok());
  EXPECT_EQ(full.wait().finish, Finish::kLength);
  EXPECT_EQ(full.tokens.size(), 8u);  // the last one has no place in the cache, and needs none
}

TEST(Scheduler, RefusesInvalidRequestsAndAFullQueue) {
  Collected collected[4];  // used until the scheduler ends
  Fixture f({.slots = 1, .max_length = 8, .vocabulary = 10}, /*max_waiting=*/2);
  uint64_t number;
  const auto code = [&](Request request) {
    return f.scheduler
        ->submit(
            std::move(request), [](const Event&) { return true; }, &number)
        .code();
  };
  EXPECT_EQ(code({.prompt = {}, .max_tokens = 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = {10}, .max_tokens = 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = {-1}, .max_tokens = 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = std::vector<int64_t>(8, 1), .max_tokens = 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = {1}, .max_tokens = 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = {1}, .sampling = {.temperature = -1}, .max_tokens = 1}),
            absl::StatusCode::kInvalidArgument);
  f.decoder->is_held = true;
  int refused = 0;
  for (Collected& each : collected) {
    const absl::Status status = f.scheduler->submit({.prompt = {1}, .max_tokens = 1}, each.sink(), &number);
    if (!status.ok()) EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    refused += !status.ok();
  }
  EXPECT_GE(refused, 1);  // two wait, and one may have begun
  f.decoder->is_held = false;
}

TEST(Scheduler, ReportsErrorsCancellationAndLateRequests) {
  Fixture f({.slots = 2, .max_length = 1000, .vocabulary = 10});
  uint64_t number;
  Collected failed, left, cancelled, late;
  f.decoder->fails = true;
  ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 9}, failed.sink(), &number).ok());
  EXPECT_EQ(failed.wait().finish, Finish::kError);
  f.decoder->fails = false;
  left.stop_reading_after = 3;
  ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 900}, left.sink(), &number).ok());
  EXPECT_EQ(left.wait().finish, Finish::kCancelled);
  EXPECT_EQ(left.tokens.size(), 3u);
  f.decoder->is_held = true;
  ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 900}, cancelled.sink(), &number).ok());
  f.scheduler->cancel(number);
  Request request{.prompt = {1}, .max_tokens = 900};
  request.deadline = std::chrono::steady_clock::now();
  ASSERT_TRUE(f.scheduler->submit(request, late.sink(), &number).ok());
  f.decoder->is_held = false;
  EXPECT_EQ(cancelled.wait().finish, Finish::kCancelled);
  EXPECT_EQ(late.wait().finish, Finish::kError);
  EXPECT_EQ(late.last.status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Scheduler, SurvivesExceptionsOfOtherTypes) {
  Fixture f({.slots = 2, .max_length = 1000, .vocabulary = 10});
  uint64_t number;
  Collected failed, good;
  f.decoder->lacks_memory = true;
  ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 9}, failed.sink(), &number).ok());
  EXPECT_EQ(failed.wait().finish, Finish::kError);
  f.decoder->lacks_memory = false;
  ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 9}, good.sink(), &number).ok());
  EXPECT_EQ(good.wait().finish, Finish::kLength);
}

TEST(Scheduler, CancelledRequestsLeaveTheQueueWhileOthersRun) {
  Collected running, waiting[3];
  Fixture f({.slots = 1, .max_length = 8, .vocabulary = 10}, /*max_waiting=*/1);
  uint64_t number;
  f.decoder->is_held = true;
  ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 1}, running.sink(), &number).ok());
  while (f.scheduler->counters().running == 0) std::this_thread::yield();
  EXPECT_EQ(f.scheduler->counters().waiting, 0u);
  for (Collected& each : waiting) {
    ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 1}, each.sink(), &number).ok());
    f.scheduler->cancel(number);
    EXPECT_EQ(each.wait().finish, Finish::kCancelled);
  }
  EXPECT_EQ(f.scheduler->counters().waiting, 0u);
  f.decoder->is_held = false;
  EXPECT_EQ(running.wait().finish, Finish::kLength);
  while (f.scheduler->counters().running != 0) std::this_thread::yield();
}

TEST(Scheduler, CancelsItsRequestsAtItsEnd) {
  Collected running;
  {
    Fixture f({.slots = 1, .max_length = 1 << 20, .vocabulary = 10});
    uint64_t number;
    ASSERT_TRUE(f.scheduler->submit({.prompt = {1}, .max_tokens = 1 << 20}, running.sink(), &number).ok());
  }
  EXPECT_EQ(running.wait().finish, Finish::kCancelled);
}

}  // namespace
}  // namespace tt::server::generation
