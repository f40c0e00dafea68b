// Bookkeeping counts against the limit: handles, graphs and errors of one tenant cause only that tenant's
// out-of-memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using testing::add;
using testing::engine_bytes;
using ::testing::HasSubstr;
using testing::literal;
using testing::session_options;

class BookkeepingTest : public testing::SessionFixture {
 protected:
  BookkeepingTest() {
    Session::Options limited = session_options();
    limited.memory_limit = 1 << 20;
    restart(limited);
    v1::Frame frame;
    literal(&frame, 1, {1}, {1});
    testing::Instruction(&frame, "requires_grad").handle(1).boolean(true);
    run(frame);
  }
  static constexpr uint64_t kMost = (1 << 20) + Account::kHostAllowance;
  uint64_t host() const { return session_->account()->host_bytes(); }
};

TEST_F(BookkeepingTest, ChargesHandlesAndRefundsThem) {
  v1::Frame frame;
  for (uint64_t name = 2; name < 12000; ++name) add(&frame, name, 1, 1).site(0);
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_THAT(error(11999).message(), HasSubstr("out of memory on the host: handles"));
  EXPECT_EQ(error(11999).kind(), v1::OUT_OF_MEMORY);
  EXPECT_LT(host(), kMost + Account::kHostOverdraft);
  v1::Frame drop;
  for (uint64_t name = 2; name < 12000; ++name) drop.add_release(name);
  run(drop);
  v1::Frame again;
  add(&again, 2, 1, 1);
  run(again);
  EXPECT_EQ(value(2).size(), 1u);
  session_->close();
  EXPECT_EQ(host(), 0u);
  EXPECT_EQ(engine_bytes(), bytes_before_);
}

TEST_F(BookkeepingTest, ChargesGraphOfOneHandle) {
  uint64_t name = 1;
  for (int i = 0; i < 4; ++i) {
    v1::Frame frame;
    for (int j = 0; j < 10000; ++j) {
      ++name;
      testing::Instruction step = add(&frame, name, name - 1, 1);
      if (name > 3) step.release(name - 2);
    }
    ASSERT_FALSE(run(frame).has_fault());
  }
  EXPECT_EQ(session_->status().handles(), 3u);
  EXPECT_THAT(error(name).message(), HasSubstr("out of memory on the host"));
  v1::Frame drop;
  drop.add_release(name);
  drop.add_release(name - 1);
  run(drop);
  v1::Frame again;
  add(&again, name + 1, 1, 1);
  run(again);
  EXPECT_EQ(value(name + 1).size(), 1u);
}

TEST_F(BookkeepingTest, AFrameWithALongListFailsAlone) {
  constexpr size_t kEntries = 2'000'000;  // 16 MB: more than the session's room and overdraft
  v1::Frame frame;
  testing::Instruction(&frame, "cat").handles(std::vector<uint64_t>(kEntries, 1)).integer(0).result(2);
  add(&frame, 3, 1, 1);
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_THAT(error(2).message(), HasSubstr("out of memory on the host"));
  v1::Frame again;
  add(&again, 4, 1, 1);
  run(again);
  EXPECT_EQ(value(4).size(), 1u);
}

// Hooks have no result that could hold an error: exceeding the limit ends the session, so that no hook is lost.
TEST_F(BookkeepingTest, ChargesHooks) {
  v1::Reply reply;
  int64_t hooks = 0;
  for (int i = 0; i < 40 && !reply.has_fault(); ++i) {
    EXPECT_LT(host(), kMost + Account::kHostOverdraft);
    v1::Frame frame;
    for (int j = 0; j < 20000; ++j) testing::Instruction(&frame, "hook").integer(++hooks).handle(1);
    reply = run(frame);
  }
  ASSERT_TRUE(reply.has_fault());
  EXPECT_THAT(reply.fault().message(), HasSubstr("out of memory on the host"));
  EXPECT_GT(hooks, 100000);
  EXPECT_EQ(host(), 0u);
}

TEST_F(BookkeepingTest, ExceededOverdraftIsFault) {
  uint64_t name = 1;
  v1::Reply reply;
  for (int i = 0; i < 40 && !reply.has_fault(); ++i) {
    v1::Frame frame;
    for (int j = 0; j < 10000; ++j) add(&frame, ++name, 1, 1);
    reply = run(frame);
  }
  ASSERT_TRUE(reply.has_fault());
  EXPECT_EQ(reply.fault().kind(), v1::OUT_OF_MEMORY);
  EXPECT_EQ(host(), 0u);
  EXPECT_EQ(engine_bytes(), bytes_before_);
}

TEST_F(BookkeepingTest, RejectsTooManyResultsBeforeExecution) {
  v1::Frame frame;
  testing::Instruction(&frame, "empty").integers({0, 60000}).integer(8).integer(0).result(5);
  testing::Instruction(&frame, "split").handle(5).integer(1).integer(1).result(10, 60000);
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_THAT(error(10).message(), HasSubstr("out of memory on the host"));
  EXPECT_LT(host(), kMost);
}

TEST_F(BookkeepingTest, ChargesSegmentAndOffersNoneToSmallSession) {
  EXPECT_EQ(session_->offer_segment(), nullptr);
  Session::Options large = session_options();
  large.memory_limit = 1 << 30;
  restart(large);
  EXPECT_EQ(host(), Session::kHostBytes);
  ASSERT_NE(session_->offer_segment(), nullptr);
  EXPECT_GE(host(), 16u << 20);
  session_->close();
  EXPECT_EQ(host(), 0u);
}

}  // namespace
}  // namespace tt::server
