// No session can read data that another session left in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "server/session/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using testing::Instruction;

constexpr int64_t kBytes[] = {1,     60,        64,      1000,          4096,    65536,
                              65537, 300 << 10, 1 << 20, (1 << 20) + 1, 5 << 20, 12 << 20};

class IsolationTest : public ::testing::Test {
 protected:
  IsolationTest() { testing::start_engine(); }

  static void run(Session& session, v1::Frame frame) {
    v1::Reply reply;
    frame.set_sequence(session.executed() + 1);
    session.execute(frame, &reply);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  }
  static std::string value(Session& session, uint64_t handle) {
    auto download = session.begin_download(handle, 0, [] { return true; });
    if (!download.ok() || download->error) return download.ok() ? download->error->message() : "refused";
    std::string bytes(download->bytes->bytes(), '?');
    download->bytes->read(bytes.data(), bytes.size());
    return bytes;
  }
  static Instruction full(v1::Frame* frame, uint64_t name, int64_t bytes) {
    return Instruction(frame, "full")
        .integers({bytes})
        .integer(0x5a)
        .integer(static_cast<int64_t>(DType::kUInt8))
        .integer(0)
        .result(name);
  }
  static Instruction empty(v1::Frame* frame, uint64_t name, int64_t bytes) {
    return Instruction(frame, "empty")
        .integers({bytes})
        .integer(static_cast<int64_t>(DType::kUInt8))
        .integer(0)
        .result(name);
  }
  // Allocates and frees memory of all sizes, filled with 'Z'.
  static void leave_traces(Session& session) {
    v1::Frame frame;
    uint64_t name = 1;
    for (int i = 0; i < 3; ++i) {
      for (int64_t bytes : kBytes) full(&frame, name++, bytes);
    }
    for (uint64_t used = 1; used < name; ++used) frame.add_release(used);
    run(session, frame);
  }
  static void expect_zeros(Session& session, uint64_t handle, size_t bytes) {
    const std::string found = value(session, handle);
    ASSERT_EQ(found.size(), bytes);
    EXPECT_EQ(std::count(found.begin(), found.end(), '\0'), static_cast<std::ptrdiff_t>(bytes)) << bytes << " bytes";
  }

  Session anna_{{}}, bert_{{}};
};

TEST_F(IsolationTest, EmptyTensorsAreZeroed) {
  leave_traces(anna_);
  v1::Frame frame;
  uint64_t name = 100;
  for (int64_t bytes : kBytes) empty(&frame, name++, bytes);
  run(bert_, frame);
  name = 100;
  for (int64_t bytes : kBytes) expect_zeros(bert_, name++, static_cast<size_t>(bytes));
}

TEST_F(IsolationTest, EmptyTensorsOfOtherSizesAreZeroed) {
  leave_traces(anna_);
  v1::Frame frame;
  std::vector<int64_t> sizes;
  for (int64_t bytes : kBytes) sizes.insert(sizes.end(), {bytes + 1, bytes * 3 / 2, bytes - 1});
  for (size_t i = 0; i < sizes.size(); ++i) empty(&frame, 100 + i, sizes[i]);
  run(bert_, frame);
  for (size_t i = 0; i < sizes.size(); ++i) expect_zeros(bert_, 100 + i, static_cast<size_t>(sizes[i]));
}

TEST_F(IsolationTest, EmptyLikeAndNewEmptyAreZeroed) {
  v1::Frame before;
  empty(&before, 1, 70000);
  run(bert_, before);
  leave_traces(anna_);
  v1::Frame frame;
  Instruction(&frame, "empty_like").handle(1).result(10);
  Instruction(&frame, "new_empty").handle(1).integers({4096}).result(11);
  run(bert_, frame);
  expect_zeros(bert_, 10, 70000);
  expect_zeros(bert_, 11, 4096);
}

TEST_F(IsolationTest, BrokenUploadLeavesNoReadableBytes) {
  constexpr size_t kSize = 1 << 20;
  {
    auto upload = anna_.begin_upload(1, kSize);
    ASSERT_TRUE(upload.ok());
    ASSERT_TRUE((*upload)->append(std::string(kSize / 2, 'Z')).ok());
  }
  anna_.close();
  // A partial upload of carl's own: the instruction fails, and its result cannot be read.
  Session::Options impatient;
  impatient.transfer_timeouts = {std::chrono::milliseconds(1), std::chrono::milliseconds(1)};
  Session carl(impatient);
  { ASSERT_TRUE((*carl.begin_upload(1, kSize))->append("half").ok()); }
  v1::Frame frame;
  testing::uploaded(&frame, 1, 1, {kSize / 4});
  empty(&frame, 2, kSize);
  run(carl, frame);
  EXPECT_NE(value(carl, 1).find("did not arrive"), std::string::npos);
  // Carl's own bytes may be there, if his upload was given up before `empty` allocated.
  const std::string found = value(carl, 2);
  ASSERT_EQ(found.size(), kSize);
  EXPECT_EQ(found.find('Z'), std::string::npos);
}

TEST_F(IsolationTest, SessionsOfOneTenantSkipZeroing) {
  Session::Options one;
  one.tenant = Account::new_tenant();
  Devices::instance().allocator({}).empty_cache();  // so that both sessions use the same block
  Session first(one), second(one);
  constexpr int64_t kSize = 3 << 20;
  v1::Frame frame;
  full(&frame, 1, kSize);
  frame.add_release(1);
  run(first, frame);
  v1::Frame look;
  empty(&look, 1, kSize);
  run(second, look);
  EXPECT_TRUE(value(second, 1) == std::string(kSize, 0x5a));
}

}  // namespace
}  // namespace tt::server
