// Reads of numbers between the instructions of a frame.
#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using testing::add;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::literal;
using testing::uploaded;

void read_scalar(v1::Frame* frame, uint64_t handle) {
  frame->add_scalar_reads(static_cast<uint64_t>(frame->instructions_size()));
  frame->add_scalar_reads(handle);
}

std::vector<float> numbers_of(const v1::Reply& reply) {
  EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
  std::vector<float> numbers;
  for (size_t at = 0; at + 16 <= reply.numbers().size(); at += 16) {
    numbers.push_back(testing::floats_of(reply.numbers().substr(at, sizeof(float)))[0]);
    EXPECT_EQ(reply.numbers().substr(at + sizeof(float), 12), std::string(12, '\0'));
  }
  return numbers;
}

void increment(v1::Frame* frame, uint64_t handle) {
  testing::Instruction(frame, "add").handle(handle).real(1).into(handle);
}

class ScalarReadsTest : public testing::SessionFixture {};

TEST_F(ScalarReadsTest, LaterInstructionsDoNotChangeTheAnswer) {
  v1::Frame frame;
  frame.set_first_number(41);
  literal(&frame, 1, {}, {7});
  read_scalar(&frame, 1);
  increment(&frame, 1);
  read_scalar(&frame, 1);
  read_scalar(&frame, 1);
  testing::Instruction(&frame, "neg").handle(1).result(2);
  read_scalar(&frame, 2);
  const v1::Reply reply = run(frame);
  EXPECT_EQ(reply.first_number(), 41u);
  EXPECT_THAT(numbers_of(reply), ElementsAre(7, 8, 8, -8));
  EXPECT_EQ(reply.number_errors_size(), 0);
}

TEST_F(ScalarReadsTest, ReadsBeforeTheFirstInstruction) {
  v1::Frame frame;
  literal(&frame, 1, {1}, {7});
  run(frame);
  v1::Frame next;
  read_scalar(&next, 1);
  increment(&next, 1);
  EXPECT_THAT(numbers_of(run(next)), ElementsAre(7));
  v1::Frame only;
  read_scalar(&only, 1);
  EXPECT_THAT(numbers_of(run(only)), ElementsAre(8));
}

TEST_F(ScalarReadsTest, ReadsViewsThroughTheirStorage) {
  v1::Frame frame;
  literal(&frame, 1, {4}, {1, 2, 3, 4});
  testing::Instruction(&frame, "select").handle(1).integer(0).integer(2).result(2);
  read_scalar(&frame, 2);
  increment(&frame, 1);
  read_scalar(&frame, 2);
  EXPECT_THAT(numbers_of(run(frame)), ElementsAre(3, 4));
}

TEST_F(ScalarReadsTest, AnswersFailedTensorsWithTheirErrors) {
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {3}, {1, 2, 3});
  literal(&frame, 3, {}, {5});
  add(&frame, 4, 1, 2).site(9);
  testing::Instruction(&frame, "sum").handle(4).result(5);
  read_scalar(&frame, 3);
  read_scalar(&frame, 5);
  read_scalar(&frame, 1);
  const v1::Reply reply = run(frame);
  EXPECT_THAT(numbers_of(reply), ElementsAre(5, 0, 0));
  ASSERT_EQ(reply.number_errors_size(), 2);
  EXPECT_EQ(reply.number_errors(0).index(), 1u);
  EXPECT_EQ(reply.number_errors(0).error().op(), "add");
  EXPECT_EQ(reply.number_errors(0).error().site(), 9u);
  EXPECT_EQ(reply.number_errors(1).index(), 2u);
  EXPECT_THAT(reply.number_errors(1).error().message(), HasSubstr("with one element, got one on cpu with 2 elements"));
}

TEST_F(ScalarReadsTest, WaitsForUploads) {
  auto upload = session_->begin_upload(7, sizeof(float));
  ASSERT_TRUE(upload.ok());
  v1::Frame frame;
  literal(&frame, 1, {}, {1});
  read_scalar(&frame, 1);
  uploaded(&frame, 2, 7, {});
  read_scalar(&frame, 2);
  increment(&frame, 2);
  std::jthread sends([&] {
    const float number = 3;
    while (!session_->busy()) std::this_thread::yield();
    EXPECT_TRUE((*upload)->append({reinterpret_cast<const char*>(&number), sizeof(number)}).ok());
  });
  EXPECT_THAT(numbers_of(run(frame)), ElementsAre(1, 3));
}

TEST_F(ScalarReadsTest, InvalidReadsAreFaults) {
  const auto fault = [&](const std::vector<uint64_t>& reads) {
    restart(testing::session_options());
    sequence_ = 0;
    v1::Frame frame;
    literal(&frame, 1, {}, {1});
    literal(&frame, 2, {}, {2});
    frame.mutable_scalar_reads()->Add(reads.begin(), reads.end());
    const v1::Reply reply = run(frame);
    EXPECT_TRUE(reply.has_fault());
    EXPECT_TRUE(session_->over());
    return reply.fault().message();
  };
  EXPECT_THAT(fault({1}), HasSubstr("expected two numbers per read"));
  EXPECT_THAT(fault({3, 1}), HasSubstr("got 3"));
  EXPECT_THAT(fault({2, 1, 1, 1}), HasSubstr("got 1"));
  EXPECT_THAT(fault({UINT64_MAX, 1}), HasSubstr("after instruction 0 to 2"));
  EXPECT_THAT(fault({1, 2}), HasSubstr("handle 2 is not in use"));
  EXPECT_THAT(fault({0, 0}), HasSubstr("handle 0 is not in use"));
  EXPECT_THAT(fault(std::vector<uint64_t>(2 * (Limits().max_scalar_reads + 1), 1)), HasSubstr("at most 8192 reads"));
}

// The values have changed since, so only the kept answers are right.
TEST_F(ScalarReadsTest, RepeatsAnswersForDuplicate) {
  v1::Frame frame;
  literal(&frame, 1, {}, {7});
  read_scalar(&frame, 1);
  run(frame);
  v1::Frame later;
  increment(&later, 1);
  run(later);
  frame.set_sequence(1);
  EXPECT_THAT(numbers_of(run_as_is(frame)), ElementsAre(7));
  later.Clear();
  later.set_received(1);
  run(later);
  const v1::Reply lost = run_as_is(frame);
  ASSERT_EQ(lost.number_errors_size(), 1);
  EXPECT_THAT(lost.number_errors(0).error().message(), HasSubstr("lost with the connection"));
}

// Answers to ordinary reads are dropped first, because they can be given again.
TEST_F(ScalarReadsTest, KeepsNumbersLongerThanOtherAnswers) {
  Session::Options limited = testing::session_options();
  limited.limits.max_kept_bytes = 100'000;
  restart(limited);
  std::vector<v1::Frame> frames;
  for (uint64_t i = 1; i <= 20; ++i) {
    v1::Frame& frame = frames.emplace_back();
    literal(&frame, 2 * i - 1, {}, {static_cast<float>(i)});
    literal(&frame, 2 * i, {4096}, std::vector<float>(4096, static_cast<float>(i)));
    read_scalar(&frame, 2 * i - 1);
    testing::read(&frame, i, 2 * i);
    increment(&frame, 2 * i - 1);
    run(frame);
  }
  for (uint64_t i = 1; i <= 20; ++i) {
    frames[i - 1].set_sequence(i);
    const v1::Reply reply = run_as_is(frames[i - 1]);
    EXPECT_THAT(numbers_of(reply), ElementsAre(static_cast<float>(i)));
    EXPECT_EQ(reply.number_errors_size(), 0);
    ASSERT_EQ(reply.reads_size(), 1);
    EXPECT_EQ(testing::floats_of(reply.reads(0).data()), std::vector<float>(4096, static_cast<float>(i)));
  }
}

}  // namespace
}  // namespace tt::server
