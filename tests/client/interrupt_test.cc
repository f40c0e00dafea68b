// Interrupts: a wait ends with Interrupted, the session stays usable, and a second interrupt cancels running work.
#include <atomic>
#include <chrono>
#include <thread>

#include "client/connection/interruption.h"
#include "tests/client/fixture.h"

namespace tt::client::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

thread_local bool is_main = false;
std::atomic<int> pending{0};  // interrupts raised and not yet consumed
std::atomic<int> asked{0};
std::atomic<int> in_language_waits{0};

class InterruptTest : public FakeSession {
 protected:
  static void SetUpTestSuite() {
    install_wait_hooks({[] { return is_main; },
                        [] {
                          ++asked;
                          int count = pending;
                          return count > 0 && pending.compare_exchange_strong(count, count - 1);
                        },
                        []() -> void* { return is_main ? &in_language_waits : nullptr; },
                        [](void*) { ++in_language_waits; }});
  }
  void SetUp() override {
    is_main = true;
    pending = 0;
    connect();
  }
  void TearDown() override {
    pending = 0;
    set_paused(false);
    set_full(false);
    session = {};
    is_main = false;
  }
  void set_paused(bool paused) {
    std::lock_guard lock(engine->mutex);
    engine->paused = paused;
    engine->changed.notify_all();
  }
  void set_full(bool full) {
    std::lock_guard lock(engine->mutex);
    engine->full = full;
    engine->changed.notify_all();
  }
  // Raises an interrupt once a wait has begun.
  std::thread interrupt_soon() {
    return std::thread([seen = asked.load()] {
      while (asked == seen) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++pending;
    });
  }
  template <typename Wait>
  void expect_interrupted(Wait wait) {
    std::thread source = interrupt_soon();
    EXPECT_THROW(wait(), Interrupted);
    source.join();
  }
  std::vector<uint64_t> cancels() {
    std::lock_guard lock(engine->mutex);
    return engine->cancels;
  }
};

TEST_F(InterruptTest, InterruptsReadAndKeepsSession) {
  engine->can_cancel = false;  // the second interrupt is covered by another test
  Tensor a = make();
  set_paused(true);
  expect_interrupted([&] { session->read(a); });
  expect_interrupted([&] { session->synchronize(); });
  set_paused(false);
  Tensor b = add(a, a);
  EXPECT_EQ(number(session->read(b)), static_cast<float>(b->id));  // the reply of this read, not of the interrupted one
  session->synchronize();
  EXPECT_THAT(engine->executed, SizeIs(2));
}

TEST_F(InterruptTest, OtherThreadsKeepWaiting) {
  Tensor a = make(), b = add(a, a);
  set_paused(true);
  std::thread other([&] { EXPECT_EQ(number(session->read(b)), static_cast<float>(b->id)); });
  expect_interrupted([&] { session->read(a); });
  set_paused(false);
  other.join();
}

TEST_F(InterruptTest, InterruptsFullWindowWithoutIssuing) {
  Tensor a = make();
  set_paused(true);
  const uint32_t version = a->version();
  std::atomic<bool> over{false};
  std::thread source([&] {  // the first wait is the one under test
    while (!over) {
      if (asked > 0) pending = 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  asked = 0;
  uint32_t issued = 0;
  auto issue_without_end = [&] {
    const CallOptions into{.into = {&a, 1}};
    for (;; ++issued) add(a, a, into);
  };
  EXPECT_THROW(issue_without_end(), Interrupted);
  over = true;
  source.join();
  EXPECT_GT(in_language_waits, 0);
  EXPECT_EQ(a->version(), version + issued);
  pending = 0;
  set_paused(false);
  session->synchronize();
  EXPECT_EQ(engine->executed.size(), 1 + issued);
}

TEST_F(InterruptTest, InterruptsFlowControlAndSendsFrameOnce) {
  engine->can_cancel = false;  // the second interrupt is covered by another test
  Tensor a = make();
  session->synchronize();
  set_full(true);
  Tensor b = add(a, a);
  expect_interrupted([&] { session->read(b); });
  expect_interrupted([&] {
    session->flush();
    session->synchronize();
  });
  set_full(false);
  EXPECT_EQ(number(session->read(b)), static_cast<float>(b->id));
  EXPECT_THAT(engine->executed, SizeIs(2));
  EXPECT_EQ(engine->last_sequence, engine->frame_sizes.size());
}

TEST_F(InterruptTest, SecondInterruptCancelsRunningWork) {
  Tensor a = make();
  session->synchronize();
  set_paused(true);
  Tensor b = add(a, a);
  expect_interrupted([&] { session->read(b); });
  EXPECT_THAT(cancels(), IsEmpty());
  Tensor c = add(a, a);
  expect_interrupted([&] { session->synchronize(); });
  EXPECT_THAT(cancels(), SizeIs(1));
  set_paused(false);
  for (const Tensor& cancelled : {b, c}) {
    try {
      session->read(cancelled);
      ADD_FAILURE() << "the instruction was executed";
    } catch (const RemoteError& error) {
      EXPECT_THAT(error.message(), HasSubstr("cancelled"));
    }
  }
  Tensor d = add(a, a);
  EXPECT_EQ(number(session->read(d)), static_cast<float>(d->id));
}

// As if the engine were too busy to answer.
TEST_F(InterruptTest, CancellationIsRepeatedUntilItIsAnswered) {
  Tensor a = make();
  session->synchronize();
  set_paused(true);
  Tensor b = add(a, a);
  {
    std::lock_guard lock(engine->mutex);
    engine->lost_cancels = 3;
  }
  expect_interrupted([&] { session->read(b); });
  expect_interrupted([&] { session->read(b); });
  while (cancels().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  set_paused(false);
  EXPECT_THROW(session->read(b), RemoteError);
  EXPECT_THAT(cancels(), SizeIs(1));
}

TEST_F(InterruptTest, FinishedWorkIsNotCancelled) {
  Tensor a = make();
  set_paused(true);
  expect_interrupted([&] { session->read(a); });
  set_paused(false);
  session->synchronize();
  set_paused(true);
  Tensor b = add(a, a);
  expect_interrupted([&] { session->read(b); });
  EXPECT_THAT(cancels(), IsEmpty());
}

TEST_F(InterruptTest, EngineWithoutCancelKeepsRunning) {
  engine->can_cancel = false;
  Tensor a = make();
  set_paused(true);
  expect_interrupted([&] { session->read(a); });
  expect_interrupted([&] { session->read(a); });
  try {
    session->cancel();
    ADD_FAILURE() << "cancel() did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotImplemented);
  }
  set_paused(false);
  EXPECT_EQ(number(session->read(a)), static_cast<float>(a->id));
}

TEST_F(InterruptTest, CancelAppliesToEarlierWork) {
  set_paused(true);
  Tensor a = make();
  session->cancel();
  set_paused(false);
  Tensor b = make();
  EXPECT_THROW(session->read(a), RemoteError);
  EXPECT_EQ(number(session->read(b)), static_cast<float>(b->id));
}

TEST_F(InterruptTest, InterruptsCloseWait) {
  set_paused(true);
  Tensor a = make();
  auto start = std::chrono::steady_clock::now();
  expect_interrupted([&] { session->close(); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  EXPECT_THROW(session->synchronize(), Error);
}

// Each call and each pause is shorter than the interval between two checks for interrupts.
TEST_F(InterruptTest, InterruptsRetriedTransfer) {
  session->synchronize();
  std::string bytes(1 << 20, 'x');
  {
    std::lock_guard lock(engine->mutex);
    for (int i = 0; i < 1000; ++i) engine->transfer_failures.push_back(absl::AbortedError("64 uploads are under way"));
  }
  expect_interrupted([&] { session->upload(bytes, DType::kUInt8, {1 << 20}, Device()); });
  std::lock_guard lock(engine->mutex);
  EXPECT_LT(engine->transfer_calls, 1000);
  engine->transfer_failures.clear();
}

TEST_F(InterruptTest, AnotherThreadResumesForInterruptibleThread) {
  Tensor a = make();
  {
    std::lock_guard lock(engine->mutex);
    engine->breaks = {{Break::kBeforeReply, 1}, {Break::kAfterDelivery, 1}};
  }
  EXPECT_EQ(number(session->read(a)), static_cast<float>(a->id));
  session->synchronize();
  EXPECT_THAT(engine->executed, SizeIs(1));
}

}  // namespace
}  // namespace tt::client::testing
