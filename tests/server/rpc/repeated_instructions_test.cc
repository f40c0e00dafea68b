// Frames that a client has shortened are restored, and invalid layouts are refused within bounded memory.
#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/transport/frame_encoder.h"
#include "proto/instruction_template.h"
#include "server/rpc/frame_buffer.h"
#include "tests/fuzz/frame_mutator.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using ::testing::HasSubstr;
using testing::Instruction;

// Both ends of a stream.
class RepeatedInstructionsTest : public ::testing::Test {
 protected:
  void parse(const v1::Frame& frame) {
    const std::string bytes = frame.SerializeAsString();
    buffer_.parse(bytes.size(), [&](auto read) {
      google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), 4096);
      return read(&stream);
    });
    sent_bytes_ = bytes.size();
  }
  void expect_same_after_transport(const v1::Frame& frame) {
    parse(encoder_.encode(frame));
    ASSERT_FALSE(buffer_.refusal()) << buffer_.refusal()->message();
    v1::Frame restored = buffer_.frame();
    restored.clear_next_name();
    ASSERT_EQ(restored.SerializeAsString(), frame.SerializeAsString());
  }
  void expect_refused(const v1::Frame& frame, const char* says) {
    FrameBuffer buffer(Limits{}, account_);
    const std::string bytes = frame.SerializeAsString();
    buffer.parse(bytes.size(), [&](auto read) {
      google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), 4096);
      return read(&stream);
    });
    ASSERT_TRUE(buffer.refusal()) << says;
    EXPECT_THAT(buffer.refusal()->message(), HasSubstr(says));
    EXPECT_EQ(buffer.frame().instructions_size(), 0);
    EXPECT_LT(account_->host_bytes(), 1u << 20);
  }

  std::shared_ptr<Account> account_ = std::make_shared<Account>("session 1");
  FrameBuffer buffer_{Limits{}, account_};
  client::FrameEncoder encoder_{{.max_templates = Limits{}.max_templates}};
  size_t sent_bytes_ = 0;
};

// A step of training: results are new in each step, parameters remain.
v1::Frame step(uint64_t sequence, uint64_t* next) {
  v1::Frame frame;
  frame.set_sequence(sequence);
  for (int i = 0; i < 8; ++i, ++*next) {
    Instruction(&frame, "add").handle(*next - 1).handle(1).real(0.5).result(*next).release(*next - 2).site(3);
  }
  Instruction(&frame, "cat").handles({*next - 1, *next - 2, 1, 2}).integer(-1).into(2).site(4);
  return frame;
}

TEST_F(RepeatedInstructionsTest, LoopTakesFewBytes) {
  uint64_t next = 1000;
  for (uint64_t i = 1; i <= 5; ++i) expect_same_after_transport(step(i, &next));
  EXPECT_LT(sent_bytes_, 9 * 7u);
}

// Steps in one frame differ in nothing once their handles are relative.
TEST_F(RepeatedInstructionsTest, StepsOfOneFrameAreCopies) {
  uint64_t next = 1000;
  for (uint64_t i = 1; i <= 3; ++i) {
    v1::Frame frame = step(i, &next);
    for (int j = 0; j < 100; ++j) frame.mutable_instructions()->MergeFrom(step(i, &next).instructions());
    expect_same_after_transport(frame);
  }
  EXPECT_LT(sent_bytes_, 200u);  // of 909 instructions
}

// The engine accepts longer layouts only without copies.
TEST_F(RepeatedInstructionsTest, LongLayoutsHaveNoCopies) {
  for (uint64_t i = 1; i <= 3; ++i) {
    v1::Frame frame;
    frame.set_sequence(i);
    for (int j = 0; j < 150; ++j) Instruction(&frame, "add").handles(std::vector<uint64_t>(4000, 5)).site(9);
    expect_same_after_transport(frame);
  }
}

TEST_F(RepeatedInstructionsTest, EveryKindOfArgumentIsRestored) {
  for (uint64_t i = 1; i <= 4; ++i) {
    v1::Frame frame;
    frame.set_sequence(i);
    frame.set_received(i - 1);
    if (i != 2) frame.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    Instruction(&frame, "add")
        .none()
        .boolean(i % 2 == 0)
        .integer(-5 * static_cast<int64_t>(i))
        .integer(INT64_MIN)
        .real(-0.0)
        .real(std::nan(""))
        .bytes("abc");
    Instruction(&frame, "add").integers({1, -1, INT64_MAX}).handles({}).handles({i, 300 * i, 1ull << 60}).result(i, 3);
    Instruction(&frame, "add").handle(i).into(1).into(i).release(0).release(i);
    v1::Argument* arg = frame.add_instructions()->add_args();
    arg->mutable_reals()->add_values(1.5);
    arg->mutable_reals()->add_values(-0.0);
    frame.add_instructions()->add_args()->mutable_complex()->set_imaginary(-2);
    frame.add_instructions()->add_args()->set_natural(UINT64_MAX);
    frame.add_instructions()->add_args();  // no value
    frame.mutable_instructions(1)->set_no_grad(true);
    frame.mutable_instructions(2)->set_inference(true);
    if (i != 2) frame.mutable_instructions(3)->set_default_dtype(i == 3 ? 6 : 9);
    testing::read(&frame, 1, 1);
    frame.add_release(i);
    frame.set_close(i == 4);
    v1::Site* site = frame.add_sites();
    site->set_id(static_cast<uint32_t>(i));
    site->set_file("train.py");
    expect_same_after_transport(frame);
  }
}

// Instructions that differ only in the sign of a zero, a length or a flag have different templates.
TEST_F(RepeatedInstructionsTest, SimilarInstructionsAreNotConfused) {
  for (uint64_t i = 1; i <= 4; ++i) {
    v1::Frame frame;
    frame.set_sequence(i);
    Instruction(&frame, "add").real(0.0);
    Instruction(&frame, "add").real(-0.0);
    Instruction(&frame, "add").integer(0);
    Instruction(&frame, "add").handle(0);
    Instruction(&frame, "add").handles({0});
    Instruction(&frame, "add").handles({0, 0});
    Instruction(&frame, "add").boolean(false);
    Instruction(&frame, "add").none();
    Instruction(&frame, "add");
    Instruction(&frame, "add").result(7);
    Instruction(&frame, "add").result(7, 1);
    Instruction(&frame, "add").result(7, 2);
    Instruction(&frame, "add").into(7);
    Instruction(&frame, "add").release(7);
    Instruction(&frame, "add").site(7);
    expect_same_after_transport(frame);
  }
}

TEST_F(RepeatedInstructionsTest, HandlesNearBothEndsOfTheirRange) {
  for (uint64_t i = 1; i <= 4; ++i) {
    v1::Frame frame;
    frame.set_sequence(i);
    for (uint64_t handle : {uint64_t{0}, uint64_t{1}, UINT64_MAX >> 1, (UINT64_MAX >> 1) + 1, UINT64_MAX}) {
      Instruction(&frame, "add").handle(handle).result(handle, 3);
    }
    expect_same_after_transport(frame);
  }
}

// More templates than either side remembers.
TEST_F(RepeatedInstructionsTest, TemplatesAreReplaced) {
  for (uint64_t i = 1; i <= 6; ++i) {
    v1::Frame frame;
    frame.set_sequence(i);
    for (int j = 0; j < 3000; ++j) {
      Instruction(&frame, "add").handle(i).integers(std::vector<int64_t>(20, j / 2)).result(i * 1000);
    }
    expect_same_after_transport(frame);
  }
  EXPECT_LT(account_->host_bytes(), 64u << 20);
}

TEST_F(RepeatedInstructionsTest, RandomFramesAreRestored) {
  fuzz::Random random(11);
  std::vector<v1::Frame> frames;
  for (int i = 0; i < 300; ++i) {
    frames.push_back(fuzz::random_frame(random));
    if (i % 2 == 0) fuzz::mutate_fields(&frames.back(), random);
    frames.back().clear_layout();
    frames.back().clear_next_name();
  }
  for (int i = 0; i < 2000; ++i) expect_same_after_transport(frames[random() % frames.size()]);
}

TEST_F(RepeatedInstructionsTest, CompressedFramesAreRestored) {
  client::FrameEncoder encoder({.max_templates = Limits{}.max_templates, .compression = CompressionMode::kAlways});
  for (uint64_t i = 1; i <= 3; ++i) {
    v1::Frame frame;
    frame.set_sequence(i);
    for (int j = 0; j < 4; ++j) Instruction(&frame, "literal").bytes(std::string(50000, 'x')).result(i * 4);
    parse(encoder.encode(frame));
    ASSERT_FALSE(buffer_.refusal()) << buffer_.refusal()->message();
    EXPECT_LT(sent_bytes_, 2000u);
    EXPECT_EQ(buffer_.frame().SerializeAsString(), frame.SerializeAsString());
    v1::Frame small;
    small.set_sequence(i);
    parse(encoder.encode(small));
    EXPECT_EQ(buffer_.frame().SerializeAsString(), small.SerializeAsString());
  }
  EXPECT_GT(account_->host_bytes(), 200000u);
}

TEST_F(RepeatedInstructionsTest, InvalidCompressionIsRefused) {
  client::FrameEncoder encoder({.compression = CompressionMode::kAlways});
  v1::Frame plain;
  Instruction(&plain, "literal").bytes(std::string(50000, 'x'));
  v1::Frame frame = encoder.encode(plain);
  ASSERT_TRUE(frame.has_compression());
  const uint64_t bytes = frame.compression().bytes();
  frame.mutable_compression()->set_bytes(bytes + 1);
  expect_refused(frame, "bytes, got");
  frame.mutable_compression()->set_bytes(bytes - 1);
  expect_refused(frame, "malformed frame");
  frame.mutable_compression()->set_bytes(uint64_t{1} << 40);
  expect_refused(frame, "when decompressed");
  frame.mutable_compression()->set_bytes(bytes);
  frame.mutable_compressed()->resize(20);
  expect_refused(frame, "malformed frame");
}

TEST_F(RepeatedInstructionsTest, InvalidLayoutsAreRefused) {
  v1::Frame frame;
  Instruction(&frame, "add").handle(1).result(2);
  frame.add_layout(layout::kFirstTemplate);
  expect_refused(frame, "unknown template");
  frame.set_layout(0, layout::kForget);
  expect_refused(frame, "too few references");
  frame.set_layout(0, layout::kPlain);
  frame.add_layout(layout::kPlain);
  expect_refused(frame, "too few instructions");
  frame.set_layout(0, layout::kRemember);
  frame.set_layout(1, layout::kFirstTemplate);
  frame.add_layout(1);
  expect_refused(frame, "too few operands");
  frame.set_layout(1, UINT64_MAX);
  expect_refused(frame, "unknown template");
}

TEST_F(RepeatedInstructionsTest, InvalidCopiesAreRefused) {
  for (const std::vector<uint64_t>& copy : {std::vector<uint64_t>{2, 1, 1},
                                            {1, 2, 1},
                                            {1, 0, 1},
                                            {1, 1, UINT64_MAX},
                                            {1, UINT64_MAX, 1},
                                            {UINT64_MAX, 1, 1},
                                            {1, 1, 1 << 20},
                                            {1, 1, 3}}) {
    v1::Frame frame;
    Instruction(&frame, "add").handle(1).result(2);
    frame.add_layout(layout::kPlain);
    frame.mutable_copies()->Add(copy.begin(), copy.end());
    expect_refused(frame, "malformed frame");
  }
}

// A few bytes must not become gigabytes.
TEST_F(RepeatedInstructionsTest, ExpansionIsBounded) {
  v1::Frame large;
  Instruction(&large, "add").bytes(std::string(60000, 'x'));
  large.add_layout(layout::kRemember);
  for (int i = 0; i < 60000; ++i) large.add_layout(layout::kFirstTemplate);
  expect_refused(large, "of host memory");

  v1::Frame many;
  Instruction(&many, "add");
  many.add_layout(layout::kRemember);
  for (int i = 0; i < 70000; ++i) many.add_layout(layout::kFirstTemplate);
  expect_refused(many, "at most 65536 instructions");

  v1::Frame table;
  for (int i = 0; i < 5000; ++i) {
    Instruction(&table, "add");
    table.add_layout(layout::kRemember);
  }
  expect_refused(table, "too many templates");
  v1::Frame bytes;
  for (int i = 0; i < 120; ++i) {
    Instruction(&bytes, "add").integers(std::vector<int64_t>(10000, 1));
    bytes.add_layout(layout::kRemember);
  }
  expect_refused(bytes, "too many templates");
}

}  // namespace
}  // namespace tt::server
