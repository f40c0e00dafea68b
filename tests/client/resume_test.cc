// Broken connections: wherever a connection breaks, each instruction is executed once and in order, or the caller
// gets an error.
#include <chrono>
#include <thread>

#include "tests/client/fixture.h"

namespace tt::client::testing {
namespace {

using ::testing::HasSubstr;

class ResumeTest : public FakeSession {
 protected:
  // Sends a dozen frames: calls, reads and waits.
  void run_script() {
    Tensor a = make();
    for (int round = 0; round < 4; ++round) {
      Tensor b = add(a, a);
      Tensor c = add(b, a);
      EXPECT_EQ(number(session->read(c)), static_cast<float>(c->id));
      session->flush();
      a = add(c, b);
      session->synchronize();
    }
  }
  void expect_each_once() {
    ASSERT_EQ(engine->executed.size(), 13u);
    for (size_t i = 0; i < engine->executed.size(); ++i) EXPECT_EQ(engine->executed[i].result(), i + 1);
  }
};

class BreakTest : public ResumeTest, public ::testing::WithParamInterface<std::tuple<Break::Kind, int>> {};

TEST_P(BreakTest, ExecutesEachInstructionOnce) {
  auto [kind, at] = GetParam();
  engine->breaks = {{kind, at}};
  connect();
  run_script();
  expect_each_once();
}

TEST_P(BreakTest, ExecutesOnceIfResumedStreamBreaks) {
  auto [kind, at] = GetParam();
  engine->breaks = {{kind, at}, {Break::kAfterDelivery, 2}, {Break::kAfterReply, 1}, {Break::kBeforeReply, 2}};
  connect();
  run_script();
  expect_each_once();
}

TEST_P(BreakTest, ReadsEachNumberBetweenItsInstructions) {
  auto [kind, at] = GetParam();
  engine->breaks = {{kind, at}, {Break::kBeforeReply, 2}};
  engine->limits.set_max_scalar_reads(100);
  connect();
  Tensor a = make();
  std::vector<std::unique_ptr<PendingValue>> numbers;
  for (int i = 0; i < 40; ++i) {
    numbers.push_back(session->read_async(a));  // after i + 1 instructions
    if (i % 3 == 0) numbers.push_back(session->read_async(a));
    add(a, a);
    if (i % 5 == 0) session->flush();
  }
  for (size_t i = 0, n = 0; i < 40; ++i) {
    for (int k = 0; k < (i % 3 == 0 ? 2 : 1); ++k) {
      float number = 0;
      std::memcpy(&number, numbers[n++]->get().data(), sizeof(number));
      EXPECT_EQ(number, static_cast<float>(i + 1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPoint, BreakTest,
                         ::testing::Combine(::testing::Values(Break::kBeforeDelivery, Break::kAfterDelivery,
                                                              Break::kBeforeReply, Break::kAfterReply),
                                            ::testing::Range(1, 10)));

TEST_F(ResumeTest, ManyThreadsSurviveBrokenStream) {
  engine->breaks = {{Break::kAfterDelivery, 7}, {Break::kBeforeReply, 5}, {Break::kAfterReply, 9}};
  connect();
  Tensor a = make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        Tensor b = add(a, a);
        if (i % 10 == 0) EXPECT_EQ(number(session->read(b)), static_cast<float>(b->id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  session->synchronize();
  ASSERT_EQ(engine->executed.size(), 401u);
  for (size_t i = 0; i < engine->executed.size(); ++i) EXPECT_EQ(engine->executed[i].result(), i + 1);
}

TEST_F(ResumeTest, GivesUpAfterRepeatedBreaks) {
  for (int i = 0; i < 2000; ++i) engine->breaks.push_back({Break::kBeforeReply, 1});
  engine->lease_seconds = 0.1;
  connect();
  Tensor a = make();
  EXPECT_THROW(session->read(a), Error);
  EXPECT_LE(engine->hellos, 10);
}

// Each stream lasts as long as one that executes a frame might, but never has a reply.
TEST_F(ResumeTest, StreamsThatLastWithoutReplyAreNotResumedForever) {
  engine->breaks.assign(2000, {Break::kBeforeReply, 1, std::chrono::milliseconds(750)});
  engine->lease_seconds = 1;
  connect();
  Tensor a = make();
  EXPECT_THROW(session->read(a), Error);
  EXPECT_LE(engine->hellos, 10);
}

// A connection that is refused for a moment is not the end, whatever refuses it.
TEST_F(ResumeTest, WaitsWhileConnectionsAreRefused) {
  engine->breaks = {{Break::kBeforeReply, 2}};
  connect();
  engine->refusing = 8;
  run_script();
  expect_each_once();
  EXPECT_EQ(engine->refusing, 0);
}

TEST_F(ResumeTest, RefusedConnectionsEndWithTheLease) {
  engine->breaks = {{Break::kBeforeReply, 1}};
  engine->lease_seconds = 0.3;
  connect();
  engine->refusing = 1000;
  Tensor a = make();
  EXPECT_THROW(session->read(a), Error);
}

TEST_F(ResumeTest, EngineThatAnswersHandshakesIsNotGone) {
  for (int i = 0; i < 10; ++i) engine->breaks.push_back({Break::kBeforeReply, 1});
  engine->hello_delay = std::chrono::milliseconds(100);
  connect();
  run_script();
  expect_each_once();
}

// The engine executes something long, and each stream breaks before the reply.
TEST_F(ResumeTest, StreamsThatLastAreResumed) {
  engine->breaks.assign(3, {Break::kBeforeReply, 1, std::chrono::seconds(1)});
  connect();
  Tensor a = make();
  EXPECT_EQ(number(session->read(a)), 1);
}

TEST_F(ResumeTest, WaitsWhileNothingAnswers) {
  engine->breaks = {{Break::kBeforeReply, 2}};
  connect();
  engine->silent = 10;
  run_script();
  expect_each_once();
  EXPECT_EQ(engine->silent, 0);
}

TEST_F(ResumeTest, SilenceEndsWithTheLease) {
  engine->breaks = {{Break::kBeforeReply, 1}};
  engine->lease_seconds = 0.3;
  connect();
  engine->silent = 1000;
  Tensor a = make();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(session->read(a), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ResumeTest, LostEngineIsConnectionError) {
  engine->paused = true;
  connect();
  Tensor a = make();
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::lock_guard lock(engine->mutex);
    engine->dead = engine->has_ended = true;
    engine->changed.notify_all();
  });
  try {
    session->read(a);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kConnection);
    EXPECT_THAT(e.message(), HasSubstr("[connection] the engine at the fake is gone"));
  }
  killer.join();
  EXPECT_THROW(make(), Error);
  EXPECT_THROW(session->synchronize(), Error);
}

TEST_F(ResumeTest, LostEngineFailsBlockedCallers) {
  engine->paused = true;
  connect();
  Tensor a = make();
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::lock_guard lock(engine->mutex);
    engine->dead = engine->has_ended = true;
    engine->changed.notify_all();
  });
  EXPECT_THROW(for (;;) add(a, a), Error);
  killer.join();
}

TEST_F(ResumeTest, UnknownSessionIsConnectionError) {
  engine->breaks = {{Break::kBeforeReply, 1}};
  connect();
  Tensor a = make();
  engine->forgetful = true;
  EXPECT_THROW(session->read(a), Error);
}

class TransferRetryTest : public ResumeTest {
 protected:
  static constexpr int64_t kBytes = 1 << 20;  // too large to be sent inline
  Tensor upload() { return session->upload(std::string(kBytes, 'x'), DType::kUInt8, {kBytes}, Device()); }
};

TEST_F(TransferRetryTest, RetriesLinkFailuresWhileLinkIsUp) {
  for (int i = 0; i < 12; ++i) {
    engine->transfer_failures.push_back(absl::UnavailableError("Connection reset by peer"));
    engine->transfer_failures.push_back(absl::CancelledError("CANCELLED"));
    engine->transfer_failures.push_back(absl::AlreadyExistsError("under way"));
  }
  connect();
  Tensor tensor = upload();
  EXPECT_EQ(engine->transfer_calls, 37);
  for (int i = 0; i < 12; ++i) engine->transfer_failures.push_back(absl::UnavailableError("Socket closed"));
  EXPECT_EQ(session->read(tensor).bytes.size(), static_cast<size_t>(kBytes));
  EXPECT_EQ(engine->transfer_calls, 50);
}

TEST_F(TransferRetryTest, TransferWaitsIfEngineIsFull) {
  for (int i = 0; i < 20; ++i) engine->transfer_failures.push_back(absl::AbortedError("64 uploads are under way"));
  connect();
  Tensor before = make();  // sent although uploads are in progress, because they may wait for this frame
  upload();
  EXPECT_EQ(engine->transfer_calls, 21);
  EXPECT_GE(engine->executed.size(), 1u);
}

TEST_F(TransferRetryTest, PermanentFailureIsNotRetried) {
  connect();
  for (auto [code, kind] : {std::pair(absl::StatusCode::kResourceExhausted, ErrorKind::kOutOfMemory),
                            std::pair(absl::StatusCode::kInvalidArgument, ErrorKind::kRuntime),
                            std::pair(absl::StatusCode::kDataLoss, ErrorKind::kRuntime)}) {
    engine->transfer_calls = 0;
    engine->transfer_failures = {absl::Status(code, "no")};
    try {
      upload();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
    }
    EXPECT_EQ(engine->transfer_calls, 1);
  }
}

TEST_F(TransferRetryTest, EndedLinkIsConnectionError) {
  connect();
  for (int i = 0; i < 1000; ++i) engine->transfer_failures.push_back(absl::UnavailableError("Socket closed"));
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::lock_guard lock(engine->mutex);
    engine->dead = engine->has_ended = true;
    engine->changed.notify_all();
  });
  try {
    upload();
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kConnection);
  }
  killer.join();
}

TEST_F(ResumeTest, MissingEngineIsConnectionError) {
  engine->dead = true;
  try {
    connect();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kConnection);
    EXPECT_THAT(e.message(), HasSubstr("connection refused"));
  }
}

}  // namespace
}  // namespace tt::client::testing
