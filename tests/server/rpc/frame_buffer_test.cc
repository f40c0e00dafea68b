// Frame sizes are computed before parsing: refused frames use no memory, and accepted ones at most the computed size.
#include "server/rpc/frame_buffer.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "google/protobuf/stubs/logging.h"

#include "server/session/frame_size.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using google::protobuf::io::ArrayInputStream;
using ::testing::HasSubstr;
using testing::Instruction;

// Measures in buffers of `block` bytes, so that fields are split across buffers.
bool measure(const std::string& bytes, FrameSize* size, uint64_t most = UINT64_MAX, int block = -1) {
  ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), block);
  return measure_frame(&stream, most, size);
}

v1::Frame full_frame() {
  v1::Frame frame;
  frame.set_sequence(7);
  frame.set_received(3);
  for (int i = 0; i < 50; ++i) {
    testing::literal(&frame, 1 + static_cast<uint64_t>(i), {2}, {1, 2}).release(9).site(4);
    Instruction(&frame, "cat").handles({1, 2, 300, 1ull << 60}).integer(-1).result(1, 3);
    Instruction(&frame, "add").handle(1).real(0.5).none().boolean(true).integers({1, -1, INT64_MAX}).into(1).into(99);
    testing::read(&frame, 1, 1);
    v1::Argument* arg = frame.add_instructions()->add_args();
    arg->mutable_reals()->add_values(1.5);
    arg->mutable_complex()->set_imaginary(2);
    frame.add_release(5);
    v1::Site* site = frame.add_sites();
    site->set_id(1);
    site->set_file("a/long/path/to/a/file.py");
    site->set_function("function");
  }
  return frame;
}

TEST(FrameSizeTest, CountsFields) {
  const v1::Frame frame = full_frame();
  const std::string bytes = frame.SerializeAsString();
  for (int block : {-1, 1, 7, 100}) {
    FrameSize size;
    ASSERT_TRUE(measure(bytes, &size, UINT64_MAX, block));
    EXPECT_EQ(size.instructions, 200u);
    EXPECT_EQ(size.reads, 50u);
  }
}

// No frame uses more memory than computed.
TEST(FrameSizeTest, IsUpperBoundOfFrameMemory) {
  std::vector<std::string> hostile = {full_frame().SerializeAsString()};
  for (std::string field :
       {std::string("\x12\x00", 2), std::string("\x22\x00", 2), std::string("\x2a\x00", 2),
        std::string("\xa0\x06\x01", 3), std::string("\xa2\x06\x00", 3), std::string("\x12\x02\x12\x00", 4),
        std::string("\x12\x04\x12\x02\x1a\x00", 6), std::string("\x12\x03\x2a\x01\x01", 5),
        std::string("\x12\x07\xa0\x06\x01\xa0\x06\x01\x00", 8),
        std::string("\x19\x01\x01\x01\x01\x01\x01\x01\x01", 9)}) {
    std::string bytes;
    while (bytes.size() < 300000) bytes += field;
    hostile.push_back(std::move(bytes));
  }
  for (const std::string& bytes : hostile) {
    FrameSize size;
    const bool is_frame = measure(bytes, &size);
    google::protobuf::Arena arena;
    auto* frame = google::protobuf::Arena::CreateMessage<v1::Frame>(&arena);
    const bool parsed = frame->ParseFromString(bytes);
    if (parsed) EXPECT_TRUE(is_frame) << bytes.substr(0, 9);
    // The count includes arrays outgrown by doubling, which the arena keeps.
    EXPECT_LE(arena.SpaceUsed(), size.bytes + 4096) << bytes.substr(0, 9);
  }
}

TEST(FrameSizeTest, AgreesWithParser) {
  const google::protobuf::LogSilencer silence;
  std::mt19937 random(3);
  const std::string whole = full_frame().SerializeAsString();
  int frames = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<char>(random());
    v1::Frame frame;
    FrameSize size;
    if (!frame.ParsePartialFromString(bytes)) continue;
    // Groups are the only wire type that a parser accepts and we do not.
    if (!measure(bytes, &size)) continue;
    ++frames;
    EXPECT_EQ(size.instructions, static_cast<uint64_t>(frame.instructions_size()));
    EXPECT_EQ(size.reads, static_cast<uint64_t>(frame.reads_size()));
  }
  EXPECT_GT(frames, 100);
}

TEST(FrameSizeTest, StopsAtTheLimit) {
  std::string bytes;
  while (bytes.size() < 1 << 20) bytes += std::string("\x12\x00", 2);
  FrameSize size;
  EXPECT_FALSE(measure(bytes, &size, 10000));
  EXPECT_LT(size.bytes, 11000u);
}

class FrameBufferTest : public ::testing::Test {
 protected:
  void parse(const std::string& bytes) {
    buffer_.parse(bytes.size(), [&](auto read) {
      ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), 4096);
      return read(&stream);
    });
  }
  static std::string repeated(const std::string& field, size_t bytes) {
    std::string all;
    while (all.size() < bytes) all += field;
    return all;
  }

  std::shared_ptr<Account> account_ = std::make_shared<Account>("session 1");
  FrameBuffer buffer_{Limits{}, account_};
};

TEST_F(FrameBufferTest, ParsesConsecutiveFrames) {
  for (int i = 0; i < 3; ++i) {
    parse(full_frame().SerializeAsString());
    ASSERT_FALSE(buffer_.refusal());
    EXPECT_EQ(buffer_.frame().SerializeAsString(), full_frame().SerializeAsString());
  }
  EXPECT_GT(account_->host_bytes(), 0u);
}

TEST_F(FrameBufferTest, RejectsOversizedFrameBeforeAllocating) {
  const std::string empty("\x12\x00", 2), arguments = repeated(empty, 2 << 20);
  const std::pair<std::string, const char*> refused[] = {
      {repeated(empty, 4 << 20), "at most 65536 instructions"},
      {repeated(std::string("\x22\x00", 2), 4 << 20), "at most 8192 reads"},
      {std::string("\x12\x80\x80\x80\x01", 5) + arguments, "of host memory"},
      {repeated("\xa0\x06\x01", 4000 << 10), "of host memory"},
      {repeated("\xff", 1 << 20), "malformed frame"}};
  for (const auto& [bytes, says] : refused) {
    parse(bytes);
    ASSERT_TRUE(buffer_.refusal()) << says;
    EXPECT_THAT(buffer_.refusal()->message(), HasSubstr(says));
    EXPECT_LT(account_->host_bytes(), 100000u);
  }
  parse(repeated(std::string("\x12\x00", 2), 5 << 20));
  EXPECT_THAT(buffer_.refusal()->message(), HasSubstr("at most 4194304 bytes"));
  parse("");
  EXPECT_FALSE(buffer_.refusal());
}

TEST_F(FrameBufferTest, RejectsFrameOverAccountLimit) {
  auto small = std::make_shared<Account>("session 2", 1 << 20);
  FrameBuffer buffer(Limits{}, small);
  const std::string bytes = repeated(std::string("\x12\x00", 2), 100 << 10);
  buffer.parse(bytes.size(), [&](auto read) {
    ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    return read(&stream);
  });
  ASSERT_TRUE(buffer.refusal());
  EXPECT_EQ(buffer.refusal()->kind(), ErrorKind::kOutOfMemory);
  EXPECT_THAT(buffer.refusal()->message(), HasSubstr("needs more than the 7 MiB of host memory"));
}

TEST_F(FrameBufferTest, ChargesAndRefundsAccount) {
  v1::Frame frame;
  for (uint64_t i = 0; i < 40; ++i) Instruction(&frame, "literal").bytes(std::string(60000, 'x')).result(i + 1);
  parse(frame.SerializeAsString());
  EXPECT_GT(account_->host_bytes(), 40u * 60000);
  parse("");
  parse("");
  EXPECT_LT(account_->host_bytes(), 100000u);
  { FrameBuffer other(Limits{}, account_); }
  EXPECT_LT(account_->host_bytes(), 100000u);
}

// A trace context has 55 characters; a client may send more.
TEST_F(FrameBufferTest, ChargesTraceContexts) {
  v1::Frame frame;
  frame.set_traceparent(std::string(3 << 20, 'x'));
  parse(frame.SerializeAsString());
  EXPECT_GT(account_->host_bytes(), 3u << 20);
  parse("");
  parse("");
  EXPECT_LT(account_->host_bytes(), 100000u);
}

}  // namespace
}  // namespace tt::server
