// A frame that waits for an upload: concurrent use of the session, and how the wait ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "client/session/encode.h"
#include "server/session/decode.h"
#include "server/session/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"
#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

using testing::add;
using testing::bytes_of;
using testing::engine_bytes;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::literal;
using testing::read;
using testing::uploaded;
using testing::wait_until;

constexpr std::chrono::seconds kLong{60};  // a limit that is not reached unless the test fails

class SuspensionTest : public ::testing::Test {
 protected:
  SuspensionTest() {
    testing::start_engine();
    bytes_before_ = engine_bytes();
    Session::Options options;
    options.id = 1;
    options.transfer_timeouts = {kLong, kLong};
    options.frame_time_limit = std::chrono::seconds(1);
    session_ = std::make_unique<Session>(options);
    v1::Frame frame;
    literal(&frame, 1, {2}, {1, 2});
    execute(std::move(frame));
  }
  ~SuspensionTest() override {
    session_.reset();
    EXPECT_EQ(engine_bytes(), bytes_before_);
  }

  v1::Reply execute(v1::Frame frame) {
    frame.set_sequence(++sequence_);
    v1::Reply reply;
    session_->execute(frame, &reply);
    return reply;
  }
  // Frame 2: handle 5 is transfer 7, handle 6 its sum with handle 1; releases handle 3.
  v1::Frame waiting_frame() {
    v1::Frame frame;
    uploaded(&frame, 5, 7, {2});
    add(&frame, 6, 5, 1);
    frame.mutable_instructions(0)->add_release(3);
    read(&frame, 1, 6);
    return frame;
  }
  // Starts the frame on another thread; returns when it is suspended.
  std::future<v1::Reply> suspend() {
    v1::Frame frame;
    literal(&frame, 3, {1}, {0});
    execute(std::move(frame));
    auto reply = std::async(std::launch::async, [this] { return execute(waiting_frame()); });
    EXPECT_TRUE(wait_until([&] { return session_->busy(); }));
    // Waits for the session's lock, which is released when the frame is suspended.
    EXPECT_TRUE(session_->begin_download(1, 1, [] { return true; }).ok());
    EXPECT_TRUE(session_->busy());
    return reply;
  }
  absl::Status send() {
    auto upload = session_->begin_upload(7, 8);
    if (!upload.ok()) return upload.status();
    return (*upload)->append(bytes_of({10, 20}));
  }

  uint64_t bytes_before_ = 0, sequence_ = 0;
  std::unique_ptr<Session> session_;
};

TEST_F(SuspensionTest, ContinuesWhenUploadArrives) {
  auto reply = suspend();
  EXPECT_EQ(reply.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  ASSERT_TRUE(send().ok());
  const v1::Reply got = reply.get();
  ASSERT_FALSE(got.has_fault()) << got.fault().message();  // handle 3 was released once
  EXPECT_EQ(floats_of(got.reads(0).data()), (std::vector<float>{11, 22}));
}

TEST_F(SuspensionTest, AllowsDownloadAndStatus) {
  auto reply = suspend();
  auto download = session_->begin_download(1, 1, [] { return true; });
  ASSERT_TRUE(download.ok()) << download.status();
  std::vector<float> values(2);
  download->bytes->read(reinterpret_cast<char*>(values.data()), 8);
  EXPECT_EQ(values, (std::vector<float>{1, 2}));
  EXPECT_EQ(session_->status().frames(), 2u);
  EXPECT_EQ(reply.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  ASSERT_TRUE(send().ok());
  EXPECT_FALSE(reply.get().has_fault());
}

TEST_F(SuspensionTest, EndsWithClose) {
  auto reply = suspend();
  session_->close();
  const v1::Error fault = reply.get().fault();
  EXPECT_EQ(fault.kind(), v1::CONNECTION);
  EXPECT_EQ(fault.message(), "[connection] the session has ended");
  EXPECT_EQ(engine_bytes(), bytes_before_);
}

TEST_F(SuspensionTest, EndsWithCancel) {
  auto reply = suspend();
  session_->cancel(3);
  const v1::Reply got = reply.get();
  ASSERT_FALSE(got.has_fault()) << got.fault().message();
  EXPECT_THAT(got.reads(0).error().message(), HasSubstr("cancelled"));
  EXPECT_EQ(session_->executed(), 3u);
}

TEST_F(SuspensionTest, EndsWithRejectedTransfer) {
  auto reply = suspend();
  auto upload = session_->begin_upload(7, 8);
  ASSERT_TRUE(upload.ok());
  EXPECT_FALSE((*upload)->fail(Error(ErrorKind::kRuntime, "the device failed")).ok());
  EXPECT_THAT(reply.get().reads(0).error().message(), HasSubstr("the device failed"));
}

TEST_F(SuspensionTest, IsExcludedFromTimeLimit) {
  auto reply = suspend();
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  session_->enforce_time_limit();
  ASSERT_TRUE(send().ok());
  EXPECT_EQ(floats_of(reply.get().reads(0).data()), (std::vector<float>{11, 22}));
}

// A client whose stream broke sends the frame again while the first one is suspended: it is executed once.
TEST_F(SuspensionTest, RepeatedFrameOfAnotherStreamWaits) {
  auto first = suspend();
  auto again = std::async(std::launch::async, [this] {
    v1::Frame frame = waiting_frame();
    frame.set_sequence(3);
    v1::Reply reply;
    session_->execute(frame, &reply);
    return reply;
  });
  EXPECT_EQ(again.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  ASSERT_TRUE(send().ok());
  EXPECT_EQ(first.get().reads(0).data(), again.get().reads(0).data());
  EXPECT_EQ(session_->executed(), 3u);
}

TEST(DecodeTest, EncodeInvertsDecode) {
  testing::start_engine();
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  uploaded(&frame, 5, 7, {2});
  add(&frame, 6, 5, 1);
  frame.mutable_instructions(2)->add_release(1);
  frame.mutable_instructions(2)->set_no_grad(true);
  testing::Instruction(&frame, "cat").handles({5, 6}).integer(0).result(7);
  testing::Instruction(&frame, "relu").handle(7).into(6);
  testing::Instruction(&frame, "full").integers({2}).none().none().none().result(8);
  read(&frame, 1, 6);
  frame.add_release(5);
  Program program, decoded;
  decode(frame, Limits(), &program);
  v1::Frame encoded;
  client::encode_program(program, &encoded);
  decode(encoded, Limits(), &decoded);
  EXPECT_TRUE(decoded == program) << to_string(program) << "\n" << to_string(decoded);
}

}  // namespace
}  // namespace tt::server
