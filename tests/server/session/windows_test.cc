// Repeated windows of instructions: what replaces them, and when instructions are executed as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/session/window_compiler.h"
#include "server/session/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using testing::engine_bytes;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::Instruction;
using testing::literal;
using testing::read;

constexpr int64_t kSize = 4096;

class WindowsTest : public ::testing::Test {
 protected:
  WindowsTest() {
    testing::start_engine();
    bytes_before_ = engine_bytes();
    session_ = std::make_unique<Session>(Session::Options{});
    session_->compile_windows(compiler_);
    v1::Frame frame;
    std::vector<float> values(kSize);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.001F * static_cast<float>(i) - 2;
    literal(&frame, 1, {kSize}, values);
    literal(&frame, 2, {kSize / 2, 2}, std::vector<float>(kSize, 0.5F));
    run(frame);
  }
  ~WindowsTest() override {
    session_.reset();
    EXPECT_EQ(engine_bytes(), bytes_before_);
  }

  v1::Reply run(v1::Frame frame) {
    v1::Reply reply;
    frame.set_sequence(session_->executed() + 1);
    session_->execute(frame, &reply);
    compiler_->wait();
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    return reply;
  }
  uint64_t runs() const { return session_->status().window_runs(); }

  const std::shared_ptr<WindowCompiler> compiler_ = std::make_shared<WindowCompiler>();
  std::unique_ptr<Session> session_;
  uint64_t bytes_before_ = 0;
};

struct Calls {
  uint64_t x = 1, y = 1;
  double factor = 2;
  bool keeps_inner = false;
  bool is_recorded = false;
};

// first + 5 = tanh(x * factor) * sigmoid(y + 1) + x * factor. Frames as they arrive fuse the last three calls only.
void add_calls(v1::Frame* frame, uint64_t first, const Calls& calls = {}) {
  Instruction(frame, "mul").handle(calls.x).real(calls.factor).result(first).site(1);
  Instruction(frame, "add").handle(calls.y).real(1).result(first + 1).site(2);
  Instruction(frame, "tanh").handle(first).result(first + 2).site(3);
  Instruction(frame, "sigmoid").handle(first + 1).result(first + 3).site(4);
  Instruction(frame, "mul").handle(first + 2).handle(first + 3).result(first + 4).release(first + 1).site(5);
  Instruction(frame, "add").handle(first + 4).handle(first).result(first + 5).release(first + 3).site(6);
  if (!calls.keeps_inner) frame->add_release(first + 2);
  for (uint64_t name : {first, first + 4}) frame->add_release(name);
  for (auto& instruction : *frame->mutable_instructions()) {
    if (!calls.is_recorded) instruction.set_no_grad(true);
  }
}

std::vector<float> expected(double factor = 2) {
  std::vector<float> values;
  for (int64_t i = 0; i < kSize; ++i) {
    const float x = 0.001F * static_cast<float>(i) - 2, scaled = x * static_cast<float>(factor);
    values.push_back(std::tanh(scaled) / (1 + std::exp(-(x + 1))) + scaled);
  }
  return values;
}

TEST_F(WindowsTest, RepeatedCallsAreReplacedAndKeepTheirBits) {
  std::string first;
  for (uint64_t i = 0; i < 8; ++i) {
    v1::Frame frame;
    add_calls(&frame, 100 * (i + 1));
    read(&frame, 1, 100 * (i + 1) + 5);
    const v1::Reply reply = run(frame);
    if (i == 0) {
      first = reply.reads(0).data();
      EXPECT_THAT(floats_of(first), ::testing::Pointwise(::testing::FloatNear(1e-5F), expected()));
    }
    EXPECT_EQ(reply.reads(0).data(), first) << i;
  }
  // Three occurrences to learn, one whose inputs the compiler receives, unless it is done before that one is executed.
  EXPECT_THAT(runs(), ::testing::AnyOf(4, 5));
  EXPECT_EQ(session_->status().windows(), 1);
  EXPECT_EQ(session_->status().window_instructions(), runs() * 5);
  EXPECT_EQ(session_->status().handles(), 2 + 8);
}

TEST_F(WindowsTest, TheTimeOfThePassesIsCharged) {
  const auto share = std::make_shared<Share>("alice");
  session_ = std::make_unique<Session>(Session::Options{.queues = std::make_shared<FairQueues>(1), .share = share});
  session_->compile_windows(compiler_);
  v1::Frame frame;
  literal(&frame, 1, {kSize}, std::vector<float>(kSize, 0.5F));
  run(frame);
  std::chrono::nanoseconds before{0};
  for (uint64_t i = 1; i <= 5; ++i) {
    if (i <= 4) before = share->used();
    frame.Clear();
    add_calls(&frame, 100 * i);
    run(frame);  // the fourth one queues the window, and it or the fifth one finds it compiled
  }
  EXPECT_THAT(runs(), ::testing::AnyOf(1, 2));
  const auto charged = (share->used() - before) / std::chrono::microseconds(1);
  frame.Clear();
  Instruction(&frame, "window_counters").result(1000);
  read(&frame, 1, 1000);
  const std::string counters = run(frame).reads(0).data();
  WindowCounters row;
  ASSERT_EQ(counters.size(), sizeof(row));
  std::memcpy(&row, counters.data(), sizeof(row));
  EXPECT_GE(charged, row.microseconds);
}

TEST_F(WindowsTest, AWindowIsFoundWhereverItBegins) {
  uint64_t name = 100;
  for (int i = 0; i < 5; ++i, name += 10) {
    v1::Frame frame;
    add_calls(&frame, name);
    run(frame);
  }
  const uint64_t before = runs();
  v1::Frame frame;
  Instruction(&frame, "neg").handle(1).result(name).site(9);
  add_calls(&frame, name + 1, {.x = name});
  add_calls(&frame, name + 11);  // the last releases are those of both
  read(&frame, 1, name + 6);
  read(&frame, 2, name + 16);
  const v1::Reply reply = run(frame);
  EXPECT_GT(runs(), before);
  EXPECT_THAT(floats_of(reply.reads(1).data()), ::testing::Pointwise(::testing::FloatNear(1e-5F), expected()));
  EXPECT_NEAR(floats_of(reply.reads(0).data())[0], std::tanh(4.0) / (1 + std::exp(1.0)) + 4, 1e-5);
}

TEST_F(WindowsTest, OtherNumbersAndOtherLiveResultsAreOtherWindows) {
  uint64_t name = 100;
  const auto value = [&](const Calls& calls, size_t inner) {
    v1::Frame frame;
    add_calls(&frame, name, calls);
    read(&frame, 1, name + 5);
    if (calls.keeps_inner) read(&frame, 2, name + 2);
    const v1::Reply reply = run(frame);
    name += 10;
    return floats_of(reply.reads(static_cast<int>(inner)).data())[1];
  };
  for (int i = 0; i < 6; ++i) value({}, 0);
  const uint64_t before = runs();
  EXPECT_GT(before, 0);
  EXPECT_NEAR(value({.factor = 3}, 0), expected(3)[1], 1e-5);
  EXPECT_EQ(runs(), before);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(value({.keeps_inner = true}, 1), std::tanh(-1.999 * 2), 1e-5);
  EXPECT_GT(runs(), before);
}

TEST_F(WindowsTest, OtherSizesAreCompiledAgain) {
  uint64_t name = 100;
  for (int i = 0; i < 12; ++i, name += 10) {
    v1::Frame frame;
    const uint64_t input = i % 2 == 0 ? 1 : 2;
    add_calls(&frame, name, {.x = input, .y = input});
    read(&frame, 1, name + 5);
    const v1::Reply reply = run(frame);
    EXPECT_EQ(reply.reads(0).tensor().sizes_size(), i % 2 == 0 ? 1 : 2);
    EXPECT_NEAR(floats_of(reply.reads(0).data())[7],
                i % 2 == 0 ? expected()[7] : std::tanh(1.0) / (1 + std::exp(-1.5)) + 1, 1e-5);
  }
  EXPECT_EQ(session_->status().windows(), 2);
  EXPECT_GT(runs(), 4);
}

TEST_F(WindowsTest, SizesThatChangeEachTimeAreIgnoredUntilTheyRecur) {
  uint64_t name = 100;
  const auto run_with = [&](int64_t size) {
    v1::Frame frame;
    literal(&frame, name, {size}, std::vector<float>(static_cast<size_t>(size), 0.5F));
    add_calls(&frame, name + 1, {.x = name, .y = name});
    read(&frame, 1, name + 6);
    frame.add_release(name);
    EXPECT_NEAR(floats_of(run(frame).reads(0).data()).back(), std::tanh(1.0) / (1 + std::exp(-1.5)) + 1, 1e-5);
    name += 10;
  };
  for (int64_t i = 0; i < 100; ++i) run_with(kSize + i);
  const uint64_t of_first_size = runs();
  EXPECT_LE(of_first_size, 1) << "the passes may end while the frame runs that they were started for";
  for (int i = 0; i < 1000 && runs() == of_first_size; ++i) run_with(kSize / 2);
  EXPECT_GT(runs(), of_first_size);
}

TEST_F(WindowsTest, FewCallsOfSmallTensorsRunAsTheyArrive) {
  for (uint64_t i = 0; i < 20; ++i) {
    v1::Frame frame;
    const uint64_t name = 100 * (i + 1);
    literal(&frame, name, {64}, std::vector<float>(64, 0.5F));
    Instruction(&frame, "tanh").handle(name).result(name + 1);
    Instruction(&frame, "sum").handle(name + 1).none().boolean(false).none().result(name + 2);
    Instruction(&frame, "exp").handle(name + 2).result(name + 3);
    Instruction(&frame, "cos").handle(name + 3).result(name + 4);
    frame.add_release(name + 1);
    for (auto& instruction : *frame.mutable_instructions()) instruction.set_no_grad(true);
    read(&frame, 1, name + 4);
    run(frame);
  }
  EXPECT_EQ(runs(), 0);
}

TEST_F(WindowsTest, ReadsBetweenTheCallsDivideThem) {
  uint64_t name = 100;
  for (int i = 0; i < 6; ++i, name += 10) {
    v1::Frame frame;
    add_calls(&frame, name);
    Instruction(&frame, "sum").handle(name + 5).none().boolean(false).none().result(name + 6).site(7);
    frame.add_scalar_reads(static_cast<uint64_t>(frame.instructions_size()));
    frame.add_scalar_reads(name + 6);
    Instruction(&frame, "neg").handle(name + 5).result(name + 7);
    read(&frame, 1, name + 7);
    const v1::Reply reply = run(frame);
    EXPECT_EQ(reply.number_errors_size(), 0);
    EXPECT_NEAR(floats_of(reply.reads(0).data())[9], -expected()[9], 1e-5);
    float sum = 0;
    std::memcpy(&sum, reply.numbers().data(), sizeof(sum));
    double exact = 0;
    for (float each : expected()) exact += each;
    EXPECT_NEAR(sum, exact, 0.05);
  }
  EXPECT_GT(runs(), 0);
  // A read in the middle of a window.
  for (int i = 0; i < 5; ++i, name += 10) {
    v1::Frame frame;
    add_calls(&frame, name);
    run(frame);
  }
  v1::Frame frame;
  add_calls(&frame, name);
  frame.add_scalar_reads(3);
  frame.add_scalar_reads(name + 2);
  const v1::Reply reply = run(frame);
  ASSERT_EQ(reply.number_errors_size(), 1);  // not a number
  EXPECT_THAT(reply.number_errors(0).error().message(), HasSubstr("4096 elements"));
}

TEST_F(WindowsTest, ErrorsAreThoseOfTheCalls) {
  uint64_t name = 100;
  for (int i = 0; i < 6; ++i, name += 10) {
    v1::Frame frame;
    add_calls(&frame, name);
    run(frame);
  }
  const uint64_t before = runs();
  v1::Frame wrong;  // an input with an error, and one whose size does not match
  literal(&wrong, name, {3}, {1, 2, 3});
  literal(&wrong, name + 1, {2}, {1, 2});
  add_calls(&wrong, name + 10, {.x = name, .y = name + 1});
  read(&wrong, 1, name + 15);
  v1::Reply reply = run(wrong);
  EXPECT_THAT(reply.reads(0).error().message(), HasSubstr("must match the size"));
  EXPECT_EQ(reply.reads(0).error().site(), 5);
  EXPECT_EQ(runs(), before);
  name += 100;
  v1::Frame used;  // a name that exists
  add_calls(&used, name);
  used.mutable_instructions(1)->set_result(1);
  v1::Reply refused;
  used.set_sequence(session_->executed() + 1);
  session_->execute(used, &refused);
  EXPECT_THAT(refused.fault().message(), HasSubstr("in use"));
}

TEST_F(WindowsTest, RecordedCallsAreExecutedAsTheyAre) {
  v1::Frame leaf;
  Instruction(&leaf, "requires_grad").handle(1).boolean(true);
  run(leaf);
  uint64_t name = 100;
  for (int i = 0; i < 8; ++i, name += 10) {
    v1::Frame frame;
    add_calls(&frame, name, {.is_recorded = true});
    run(frame);
  }
  EXPECT_EQ(runs(), 0);
  for (int i = 0; i < 8; ++i, name += 10) {
    v1::Frame frame;
    add_calls(&frame, name);  // without recording
    run(frame);
  }
  EXPECT_GT(runs(), 0);
}

TEST_F(WindowsTest, AFrameOfManyRepetitionsHasAPeriod) {
  uint64_t name = 100, x = 95;
  v1::Frame input;
  Instruction(&input, "neg").handle(1).result(x);
  run(input);
  for (int i = 0; i < 3; ++i) {
    v1::Frame frame;
    for (int k = 0; k < 20; ++k, name += 10) {
      Instruction(&frame, "mul").handle(x).real(0.5).result(name);
      Instruction(&frame, "neg").handle(x).result(name + 1);
      Instruction(&frame, "tanh").handle(name).result(name + 2);
      Instruction(&frame, "exp").handle(name + 1).result(name + 3);
      Instruction(&frame, "sub").handle(name + 2).handle(name + 3).result(name + 4);
      Instruction last(&frame, "tanh");
      last.handle(name + 4).result(name + 5);
      for (uint64_t dropped = name; dropped < name + 4; ++dropped) last.release(dropped);
      last.release(x);
      frame.add_release(name + 4);
      x = name + 5;
    }
    for (auto& instruction : *frame.mutable_instructions()) instruction.set_no_grad(true);
    frame.clear_release();
    run(frame);
  }
  EXPECT_GE(runs(), 19);
}

TEST_F(WindowsTest, FramesWithMoreDifferentPartsThanAreCountedHaveWindows) {
  uint64_t name = 100;
  for (int i = 0; i < 8; ++i) {
    v1::Frame frame;
    uint64_t x = 1;
    for (int k = 0; k < 20000; ++k, x = name++) {
      Instruction call(&frame, "mul");
      call.handle(x).real(1 + 1e-6 * k).result(name);
      if (k > 1) call.release(x - 1);
    }
    for (auto& instruction : *frame.mutable_instructions()) instruction.set_no_grad(true);
    frame.add_release(x - 1);
    frame.add_release(x);
    run(frame);
  }
  EXPECT_GT(runs(), 0);
}

TEST_F(WindowsTest, RandomNumbersAreThoseOfSingleCalls) {
  std::string values[2];
  for (int way = 0; way < 2; ++way) {
    Session session(Session::Options{});
    if (way == 1) session.compile_windows(compiler_);
    for (uint64_t i = 0; i < 6; ++i) {
      v1::Frame frame;
      const uint64_t name = 10 * (i + 1);
      Instruction(&frame, "randn").integers({kSize}).none().none().result(name);
      Instruction(&frame, "rand").integers({kSize}).none().none().result(name + 1);
      Instruction(&frame, "tanh").handle(name).result(name + 2);
      Instruction(&frame, "mul").handle(name + 2).handle(name + 1).result(name + 3);
      Instruction(&frame, "add").handle(name + 3).handle(name + 2).result(name + 4);
      read(&frame, 1, name + 4);
      frame.set_sequence(i + 1);
      for (uint64_t k = 0; k < 4; ++k) frame.add_release(name + k);
      v1::Reply reply;
      session.execute(frame, &reply);
      ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
      compiler_->wait();
      values[way] += reply.reads(0).data();
    }
    if (way == 1) {
      EXPECT_GT(session.status().window_runs(), 0);
    }
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST_F(WindowsTest, CompiledAtOnceTheFirstOccurrenceIsReplaced) {
  std::string values[2];
  for (int way = 0; way < 2; ++way) {
    Session session(Session::Options{});
    if (way == 1) session.compile_windows(std::make_shared<WindowCompiler>(/*at_once=*/true));
    v1::Frame frame;
    literal(&frame, 1, {kSize}, std::vector<float>(kSize, 0.25F));
    add_calls(&frame, 100);
    read(&frame, 1, 105);
    frame.set_sequence(1);
    v1::Reply reply;
    session.execute(frame, &reply);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
    values[way] = reply.reads(0).data();
    EXPECT_EQ(session.status().window_runs(), static_cast<uint64_t>(way));
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST_F(WindowsTest, ASessionMayEndWhileItsWindowsAreCompiled) {
  for (int i = 0; i < 20; ++i) {
    Session session(Session::Options{});
    session.compile_windows(compiler_);
    for (uint64_t k = 0; k < 4; ++k) {
      v1::Frame frame;
      literal(&frame, 1000 + k, {1}, {1});
      add_calls(&frame, 10 * (k + 1), {.x = 1000 + k, .y = 1000 + k});
      frame.set_sequence(k + 1);
      v1::Reply reply;
      session.execute(frame, &reply);
      ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
    }
  }
  compiler_->wait();
}

}  // namespace
}  // namespace tt::server
