#include "client/link/scalar_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tt::client {
namespace {

using testing::ElementsAre;

class ScalarReadsTest : public testing::Test {
 protected:
  Ref<PendingScalar> add(uint64_t handle, uint64_t sequence) { return reads_.add(handle, sequence, &frame_); }
  static v1::Reply reply(uint64_t first, const std::vector<float>& numbers) {
    v1::Reply reply;
    reply.set_first_number(first);
    for (float number : numbers) {
      std::string bytes(PendingScalar::kBytes, '\0');
      std::memcpy(bytes.data(), &number, sizeof(number));
      *reply.mutable_numbers() += bytes;
    }
    return reply;
  }
  void answer(v1::Reply reply) { reads_.answer(reply); }
  static float value(const Ref<PendingScalar>& number) {
    EXPECT_TRUE(number->has_arrived());
    float value = 0;
    std::memcpy(&value, number->bytes, sizeof(value));
    return value;
  }

  ScalarReads reads_;
  v1::Frame frame_;
};

TEST_F(ScalarReadsTest, AddsPositionAndHandle) {
  frame_.add_instructions();
  add(7, 1);
  frame_.add_instructions();
  frame_.add_instructions();
  add(8, 1);
  EXPECT_THAT(frame_.scalar_reads(), ElementsAre(1, 7, 3, 8));
  EXPECT_EQ(frame_.first_number(), 1u);
  frame_.Clear();
  add(9, 2);
  EXPECT_THAT(frame_.scalar_reads(), ElementsAre(0, 9));
  EXPECT_EQ(frame_.first_number(), 3u);
}

TEST_F(ScalarReadsTest, AnswersInOrder) {
  const Ref<PendingScalar> a = add(7, 1), b = add(8, 1), c = add(9, 2);
  EXPECT_EQ(reads_.answered_through(5), 0u);
  answer(reply(1, {1.5f, 2.5f}));
  EXPECT_EQ(value(a), 1.5f);
  EXPECT_EQ(value(b), 2.5f);
  EXPECT_FALSE(c->has_arrived());
  EXPECT_EQ(reads_.answered_through(5), 1u);
  EXPECT_EQ(reads_.answered_through(1), 1u);
  answer(reply(3, {3.5f}));
  EXPECT_EQ(value(c), 3.5f);
  EXPECT_EQ(reads_.answered_through(5), 5u);
}

// After a resume the engine sends answers again.
TEST_F(ScalarReadsTest, FirstAnswerCounts) {
  const Ref<PendingScalar> a = add(7, 1), b = add(8, 2), c = add(9, 3);
  answer(reply(2, {2}));
  answer(reply(1, {1}));
  answer(reply(1, {10}));
  answer(reply(2, {20}));
  answer(reply(3, {3}));
  EXPECT_THAT((std::vector<float>{value(a), value(b), value(c)}), ElementsAre(1, 2, 3));
}

TEST_F(ScalarReadsTest, StoresErrors) {
  const Ref<PendingScalar> a = add(7, 1), b = add(8, 1);
  v1::Reply failed = reply(1, {0, 4});
  failed.add_number_errors()->mutable_error()->set_message("failed");
  answer(std::move(failed));
  ASSERT_TRUE(a->has_arrived() && a->error);
  EXPECT_EQ(a->error->message(), "failed");
  EXPECT_FALSE(b->error);
  EXPECT_EQ(value(b), 4);
}

TEST_F(ScalarReadsTest, IgnoresAnswersToReadsThatWereNeverRequested) {
  const Ref<PendingScalar> a = add(7, 1);
  answer(reply(0, {}));
  answer(reply(2, {1, 2}));
  answer(reply(UINT64_MAX, {1}));
  v1::Reply reply_without_numbers = reply(1, {});
  reply_without_numbers.add_number_errors()->mutable_error()->set_message("failed");
  answer(std::move(reply_without_numbers));
  EXPECT_FALSE(a->has_arrived());
  EXPECT_FALSE(a->error);
  v1::Reply beyond = reply(1, {5, 6});
  beyond.add_number_errors()->set_index(1);
  beyond.add_number_errors()->set_index(UINT32_MAX);
  answer(std::move(beyond));
  EXPECT_EQ(value(a), 5);
  EXPECT_FALSE(a->error);
}

TEST_F(ScalarReadsTest, AnswerOfDroppedNumberIsIgnored) {
  add(7, 1);
  const Ref<PendingScalar> b = add(8, 1);
  answer(reply(1, {1, 2}));
  EXPECT_EQ(value(b), 2);
}

TEST_F(ScalarReadsTest, IsFullAtTheLimit) {
  for (size_t i = 0; i < ScalarReads::kMax; ++i) {
    EXPECT_FALSE(reads_.is_full());
    add(7, 1);
  }
  EXPECT_TRUE(reads_.is_full());
  answer(reply(1, {1}));
  EXPECT_FALSE(reads_.is_full());
}

}  // namespace
}  // namespace tt::client
