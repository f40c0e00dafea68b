// Cancelled work: by the client, by the time limit, and with the session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "server/session/sessions.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"
#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::engine_bytes;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::Instruction;
using testing::kTimeout;
using testing::literal;
using testing::read;
using testing::wait_until;

Instruction full(v1::Frame* frame, uint64_t name, const std::vector<int64_t>& sizes, double value,
                 DType dtype = DType::kFloat32) {
  return Instruction(frame, "full")
      .integers(sizes)
      .real(value)
      .integer(static_cast<int64_t>(dtype))
      .none()
      .result(name);
}

// A single kernel that runs in blocks for a second or more: the product of two matrices like handle 1.
constexpr int64_t kSide = 4096;
Instruction long_product(v1::Frame* frame) { return Instruction(frame, "matmul").handle(1).handle(1); }

// Many small instructions that take seconds: handle 1 is written repeatedly.
v1::Frame many_writes(uint64_t sequence) {
  v1::Frame frame;
  frame.set_sequence(sequence);
  full(&frame, 1, {1 << 18}, 1);
  for (int i = 0; i < 60'000; ++i) Instruction(&frame, "mul").handle(1).real(1.0).into(1);
  return frame;
}

class CancelTest : public ::testing::Test {
 protected:
  CancelTest() {
    testing::start_engine();
    bytes_before_ = engine_bytes();
  }
  // Opens a session in `sessions`.
  static std::shared_ptr<Session> open(Sessions& sessions) {
    v1::HelloReply reply;
    EXPECT_TRUE(sessions.hello({}, &reply).ok());
    return sessions.find(reply.session_key());
  }
  static std::future<v1::Reply> start(Session& session, v1::Frame frame) {
    auto replied = std::async(std::launch::async, [&session, frame = std::move(frame)] {
      v1::Reply reply;
      session.execute(frame, &reply);
      return reply;
    });
    EXPECT_TRUE(wait_until([&] { return session.busy(); }));
    return replied;
  }
  static v1::ReadResult look(Session& session, uint64_t sequence, uint64_t handle) {
    v1::Frame frame;
    frame.set_sequence(sequence);
    read(&frame, 1, handle);
    v1::Reply reply;
    session.execute(frame, &reply);
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    return reply.reads_size() == 1 ? reply.reads(0) : v1::ReadResult();
  }

  uint64_t bytes_before_;
};

TEST_F(CancelTest, StopsFrameBetweenInstructions) {
  Sessions sessions({});
  auto session = open(sessions);
  auto running = start(*session, many_writes(1));
  EXPECT_EQ(session->cancel(1), 0u);
  v1::Reply reply = running.get();
  EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(reply.executed(), 1u);
  v1::ReadResult result = look(*session, 2, 1);
  EXPECT_THAT(result.error().message(), HasSubstr("] cancelled by the client"));
  v1::Frame frame;
  frame.set_sequence(3);
  literal(&frame, 2, {2}, {1, 2});
  testing::add(&frame, 3, 2, 2);
  read(&frame, 1, 3);
  reply.Clear();
  session->execute(frame, &reply);
  EXPECT_EQ(floats_of(reply.reads(0).data()), (std::vector<float>{2, 4}));
}

TEST_F(CancelTest, StopsFrameWithinKernel) {
  Sessions sessions({});
  auto session = open(sessions);
  v1::Frame setup, frame;
  setup.set_sequence(1);
  full(&setup, 1, {kSide, kSide}, 1, DType::kFloat64);
  v1::Reply reply;
  session->execute(setup, &reply);
  frame.set_sequence(2);
  long_product(&frame).result(3);
  auto running = start(*session, frame);
  ASSERT_TRUE(wait_until([&] { return session->status().held_bytes() >= 2u * kSide * kSide * 8; }));
  std::this_thread::sleep_for(milliseconds(20));  // the product is running
  session->cancel(2);
  EXPECT_FALSE(running.get().has_fault());
  EXPECT_EQ(look(*session, 3, 3).error().message(), "[matmul] cancelled by the client");
}

TEST_F(CancelTest, PartialWritePoisonsEveryAlias) {
  Sessions sessions({});
  auto session = open(sessions);
  v1::Frame setup, frame;
  setup.set_sequence(1);
  full(&setup, 1, {kSide, kSide}, 1, DType::kFloat64);
  full(&setup, 10, {kSide * kSide}, 5, DType::kFloat64);
  Instruction(&setup, "reshape").handle(10).integers({kSide, kSide}).result(11);
  full(&setup, 12, {1}, 7);
  v1::Reply reply;
  session->execute(setup, &reply);
  frame.set_sequence(2);
  long_product(&frame).into(11);
  auto running = start(*session, frame);
  std::this_thread::sleep_for(milliseconds(200));  // the product is running
  session->cancel(2);
  EXPECT_FALSE(running.get().has_fault());
  EXPECT_EQ(look(*session, 3, 11).error().message(), "[matmul] cancelled by the client");
  EXPECT_EQ(look(*session, 4, 10).error().message(), "[matmul] cancelled by the client");  // written through the view
  EXPECT_FALSE(look(*session, 5, 12).has_error());
}

TEST_F(CancelTest, CancelsLaterFramesUpToSequence) {
  Sessions sessions({});
  auto session = open(sessions);
  session->cancel(1);
  v1::Frame first, second;
  first.set_sequence(1);
  second.set_sequence(2);
  full(&first, 1, {2}, 1);
  full(&second, 2, {2}, 1);
  v1::Reply reply;
  session->execute(first, &reply);
  session->execute(second, &reply);
  EXPECT_THAT(look(*session, 3, 1).error().message(), HasSubstr("cancelled by the client"));
  EXPECT_FALSE(look(*session, 4, 2).has_error());
}

TEST_F(CancelTest, DropsCancelledUpload) {
  Sessions sessions({});
  auto session = open(sessions);
  v1::Frame frame;
  frame.set_sequence(1);
  testing::uploaded(&frame, 1, 7, {1024});
  auto running = start(*session, frame);
  session->cancel(1);
  EXPECT_FALSE(running.get().has_fault());
  EXPECT_THAT(look(*session, 2, 1).error().message(), HasSubstr("cancelled"));
  auto late = session->begin_upload(7, 4096);
  ASSERT_TRUE(late.ok()) << late.status();
  const std::string bytes(4096, 'x');
  EXPECT_TRUE((*late)->append(bytes).ok());
  EXPECT_EQ(session->status().held_bytes(), 0u);
}

TEST_F(CancelTest, CancelledBackwardPassLeavesNoGradient) {
  Sessions sessions({});
  auto session = open(sessions);
  v1::Frame frame;
  frame.set_sequence(1);
  literal(&frame, 1, {2}, {1, 2});
  Instruction(&frame, "requires_grad").handle(1).boolean(true);
  Instruction(&frame, "sum").handle(1).result(2);
  v1::Reply reply;
  session->execute(frame, &reply);
  auto backward = [&](uint64_t sequence, uint64_t name) {
    v1::Frame pass;
    pass.set_sequence(sequence);
    Instruction(&pass, "backward")
        .handles({2})
        .handles({})
        .handles({1})
        .boolean(true)
        .boolean(true)
        .boolean(false)
        .result(name, 1);
    reply.Clear();
    session->execute(pass, &reply);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  };
  session->cancel(2);
  backward(2, 5);
  backward(3, 6);  // would accumulate into a missing gradient
  EXPECT_THAT(look(*session, 4, 5).error().message(), HasSubstr("cancelled"));
  EXPECT_THAT(look(*session, 5, 6).error().message(), HasSubstr("cancelled"));
  v1::Frame clear;
  clear.set_sequence(6);
  Instruction(&clear, "set_grads").handles({1}).handles({0});
  session->execute(clear, &reply);
  backward(7, 7);
  EXPECT_EQ(floats_of(look(*session, 8, 7).data()), (std::vector<float>{1, 1}));
}

TEST_F(CancelTest, TimeLimitCancelsFrameAndPoisonsItsOptimizerStep) {
  Sessions::Options options;
  options.frame_time_limit = milliseconds(200);
  Sessions sessions(options);
  auto session = open(sessions);
  v1::Frame frame = many_writes(1);
  full(&frame, 2, {2}, 1);
  full(&frame, 3, {2}, 1);
  v1::Frame setup;
  setup.set_sequence(1);
  full(&setup, 20, {2}, 1);
  full(&setup, 21, {2}, 1);
  v1::Reply reply;
  session->execute(setup, &reply);
  frame.set_sequence(2);
  Instruction(&frame, "sgd_step")
      .handles({20})
      .handles({21})
      .handles({})
      .real(0.1)
      .real(0)
      .real(0)
      .real(0)
      .boolean(false)
      .boolean(false)
      .boolean(true);
  reply.Clear();
  session->execute(frame, &reply);
  EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(look(*session, 3, 1).error().message(), "[mul] exceeded the engine's time limit of 0.2 s for one frame");
  EXPECT_THAT(look(*session, 4, 20).error().message(), HasSubstr("time limit"));
  EXPECT_FALSE(look(*session, 5, 21).has_error());
}

TEST_F(CancelTest, TimeLimitExcludesWaitForUpload) {
  Sessions::Options options;
  options.frame_time_limit = milliseconds(100);
  Sessions sessions(options);
  auto session = open(sessions);
  v1::Frame frame;
  frame.set_sequence(1);
  testing::uploaded(&frame, 1, 7, {1});
  auto running = start(*session, frame);
  std::this_thread::sleep_for(milliseconds(500));
  auto upload = session->begin_upload(7, 4);
  EXPECT_TRUE((*upload)->append(testing::bytes_of({3})).ok());
  running.get();
  EXPECT_EQ(floats_of(look(*session, 2, 1).data()), std::vector<float>{3});
}

TEST_F(CancelTest, EndsSessionWhileFrameRuns) {
  Sessions sessions({});
  auto session = open(sessions);
  auto running = start(*session, many_writes(1));
  EXPECT_FALSE(sessions.end(session->id() + 1));
  EXPECT_TRUE(sessions.end(session->id()));
  EXPECT_EQ(sessions.find(session->key()), nullptr);
  EXPECT_THAT(running.get().fault().message(), HasSubstr("ended"));
  EXPECT_TRUE(wait_until([&] { return engine_bytes() == bytes_before_ && sessions.size() == 0; }));
  EXPECT_FALSE(sessions.end(session->id()));
}

TEST_F(CancelTest, BrokenStreamStartsLeaseWhileFrameRuns) {
  Sessions::Options options;
  options.lease = milliseconds(50);
  Sessions sessions(options);
  auto session = open(sessions);
  std::atomic<bool> broken{false};
  const uint64_t stream = sessions.attach(
      *session, [] {}, [&] { return broken.load(); });
  auto running = start(*session, many_writes(1));
  std::this_thread::sleep_for(milliseconds(300));
  ASSERT_EQ(sessions.list().size(), 1u);
  EXPECT_TRUE(sessions.list()[0].connected());
  EXPECT_EQ(session->stream(), stream);
  broken = true;
  EXPECT_TRUE(running.get().has_fault());  // cancelled long before completion
  EXPECT_NE(session->stream(), stream);
  EXPECT_TRUE(sessions.list().empty());
  EXPECT_TRUE(wait_until([&] { return engine_bytes() == bytes_before_; }));
  sessions.detach(*session, stream);  // a late detach of a replaced stream has no effect
}

TEST_F(CancelTest, UncancellableFrameBlocksNoOtherSession) {
  Sessions::Options options;
  options.lease = milliseconds(50);
  Sessions sessions(options);
  auto stuck = open(sessions);
  const uint64_t stream = sessions.attach(*stuck, [] {});
  v1::Frame numbers, frame;
  numbers.set_sequence(1);
  Instruction(&numbers, "randn").integers({1500, 1500}).none().none().result(1);
  v1::Reply reply;
  stuck->execute(numbers, &reply);
  frame.set_sequence(2);
  Instruction(&frame, "eig_decomposed").handle(1).result(2, 2);  // takes seconds in LAPACK
  auto running = start(*stuck, frame);
  std::this_thread::sleep_for(milliseconds(200));
  sessions.detach(*stuck, stream);
  auto other = open(sessions);
  EXPECT_TRUE(wait_until([&] { return other->over(); }));
  EXPECT_TRUE(sessions.list().empty());
  EXPECT_EQ(running.wait_for(milliseconds(0)), std::future_status::timeout) << "the stuck frame completed too soon";
  EXPECT_TRUE(running.get().has_fault());
}

TEST_F(CancelTest, ShutdownLetsFrameFinish) {
  Sessions sessions({});
  auto session = open(sessions);
  v1::Frame frame;
  frame.set_sequence(1);
  full(&frame, 1, {1 << 18}, 1);
  for (int i = 0; i < 1000; ++i) Instruction(&frame, "mul").handle(1).real(1.0).into(1);
  auto running = start(*session, frame);
  sessions.end_all(kTimeout);
  v1::Reply reply = running.get();
  EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(engine_bytes(), bytes_before_);
}

TEST_F(CancelTest, ManyViewsTakeLinearTime) {
  Sessions sessions({});
  auto session = open(sessions);
  constexpr uint32_t kPieces = 50'000;
  for (const char* op : {"split", "unbind", "chunk", "tensor_split"}) {
    const uint64_t sequence = session->executed() + 1;
    v1::Frame frame;
    frame.set_sequence(sequence);
    full(&frame, 1, {kPieces}, 1);
    Instruction instruction(&frame, op);
    instruction.handle(1);
    if (std::string_view(op) == "split") instruction.integer(1);
    if (std::string_view(op) == "unbind") instruction.integer(0);
    if (std::string_view(op) == "chunk" || std::string_view(op) == "tensor_split") instruction.integer(kPieces);
    instruction.result(2, kPieces);
    for (uint64_t name = 1; name < 2 + kPieces; ++name) frame.add_release(name);
    const auto began = steady_clock::now();
    v1::Reply reply;
    session->execute(frame, &reply);
    EXPECT_FALSE(reply.has_fault()) << op << ": " << reply.fault().message();
    EXPECT_EQ(session->status().failed(), 0u) << op;
    // About 30 ms; a quadratic algorithm takes a minute.
    EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(10)) << op;
  }
}

TEST_F(CancelTest, GradientsOfManyViewsTakeLinearTime) {
  Sessions sessions({});
  auto session = open(sessions);
  constexpr uint32_t kPieces = 50'000;
  v1::Frame frame;
  frame.set_sequence(1);
  full(&frame, 1, {kPieces}, 3);
  Instruction(&frame, "requires_grad").handle(1).boolean(true);
  Instruction(&frame, "unbind").handle(1).integer(0).result(10, kPieces);
  std::vector<uint64_t> pieces(kPieces);
  std::iota(pieces.begin(), pieces.end(), 10);
  Instruction(&frame, "stack").handles(pieces).integer(0).result(2);
  Instruction(&frame, "mul").handle(2).handle(2).result(3);
  Instruction(&frame, "sum").handle(3).result(4);
  Instruction(&frame, "backward").handles({4}).handles({}).handles({1}).boolean(true).result(5, 1);
  Instruction(&frame, "sum").handle(5).result(6);
  read(&frame, 1, 6);
  const auto began = steady_clock::now();
  v1::Reply reply;
  session->execute(frame, &reply);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  ASSERT_FALSE(reply.reads(0).has_error()) << reply.reads(0).error().message();
  EXPECT_EQ(floats_of(reply.reads(0).data()), std::vector<float>{6.0f * kPieces});
  EXPECT_LT(steady_clock::now() - began,
            std::chrono::seconds(20));  // about 100 ms; a quadratic algorithm takes 30 s, and far more with sanitizers
}

}  // namespace
}  // namespace tt::server
