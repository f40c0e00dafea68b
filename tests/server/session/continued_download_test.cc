// Downloads that continue after a broken connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using ::testing::ElementsAre;
using testing::floats_of;
using testing::literal;

class ContinuedDownloadTest : public testing::SessionFixture {
 protected:
  ContinuedDownloadTest() {
    v1::Frame frame;
    literal(&frame, 1, {2, 3}, {1, 2, 3, 4, 5, 6});
    testing::Instruction(&frame, "transpose").handle(1).integer(0).integer(1).result(2);
    run(frame);
  }
  Download download(uint64_t handle, const DownloadResume& how) {
    auto download = session_->begin_download(
        handle, 0, [] { return true; }, how);
    EXPECT_TRUE(download.ok()) << download.status();
    return *std::move(download);
  }
  uint64_t state_of(uint64_t handle) { return download(handle, {.keep_above = 0}).state; }
  static std::vector<float> values(Download& download) {
    std::string bytes(download.bytes->left(), '\0');
    download.bytes->read(bytes.data(), bytes.size());
    return floats_of(bytes);
  }
  void write_to(uint64_t handle) {
    v1::Frame frame;
    testing::Instruction(&frame, "add").handle(handle).real(10).into(handle);
    ASSERT_FALSE(run(frame).has_fault());
  }
};

TEST_F(ContinuedDownloadTest, SendsRemainingBytes) {
  for (auto [handle, rest] : {std::pair(1, std::vector<float>{4, 5, 6}), std::pair(2, std::vector<float>{5, 3, 6})}) {
    const uint64_t name = static_cast<uint64_t>(handle);
    const uint64_t state = state_of(name);
    EXPECT_NE(state, 0u);
    Download again = download(name, {12, state, 0});
    EXPECT_EQ(again.offset, 12u);
    EXPECT_EQ(again.state, state);
    EXPECT_EQ(values(again), rest);
  }
  Download at_its_end = download(1, {24, state_of(1), 0});
  EXPECT_EQ(at_its_end.offset, 24u);
  EXPECT_EQ(at_its_end.bytes->left(), 0u);
}

TEST_F(ContinuedDownloadTest, RestartsAfterWriteToTensor) {
  const uint64_t state = state_of(1);
  write_to(2);  // a view of handle 1
  Download again = download(1, {12, state, 0});
  EXPECT_EQ(again.offset, 0u);
  EXPECT_NE(again.state, state);
  EXPECT_THAT(values(again), ElementsAre(11, 12, 13, 14, 15, 16));
}

TEST_F(ContinuedDownloadTest, RestartsWithoutKeptStateOrWithInvalidOffset) {
  const uint64_t state = state_of(1);
  EXPECT_EQ(download(1, {12, state + 1, 0}).offset, 0u);
  EXPECT_EQ(download(1, {28, state, 0}).offset, 0u);
  EXPECT_EQ(download(1, {UINT64_MAX, state, 0}).offset, 0u);
  EXPECT_EQ(download(1, {6, state, 0}).offset, 0u);
  EXPECT_EQ(download(2, {12, state, 0}).offset, 0u);  // other strides
  EXPECT_EQ(download(1, {12, 0}).offset, 0u);
}

TEST_F(ContinuedDownloadTest, KeepsMemoryOnlyWhileTensorLives) {
  uint64_t state = state_of(1);
  v1::Frame frame;
  frame.add_release(1);
  frame.add_release(2);
  run(frame);
  EXPECT_EQ(session_->status().held_bytes(), 0u);
  v1::Frame next;  // may reuse the same memory
  literal(&next, 3, {2, 3}, {7, 8, 9, 10, 11, 12});
  run(next);
  EXPECT_EQ(download(3, {12, state, 0}).offset, 0u);
  session_->finish_download();
}

}  // namespace
}  // namespace tt::server
