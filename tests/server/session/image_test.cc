// Images of sessions: what was written is read again, and damaged bytes are refused.
#include "server/session/session_image.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "engine/schema/error.h"
#include "engine/schema/op.h"
#include "server/daemon/backends.h"
#include "server/session/session.h"
#include "tests/server/frames.h"
#include "tests/server/image_bytes.h"

namespace tt::server {
namespace {

using testing::floats_of;
using testing::Instruction;
using testing::literal;
using testing::read;

class StringSink final : public ImageSink {
 public:
  void write(const void* data, size_t size) override { bytes.append(static_cast<const char*>(data), size); }
  std::string bytes;
};

class StringSource final : public ImageSource {
 public:
  explicit StringSource(const std::string& bytes) : bytes_(bytes) {}
  void read(void* into, size_t size) override {
    check(size <= bytes_.size() - at_, "the image ends early");
    bytes_.copy(static_cast<char*>(into), size, at_);
    at_ += size;
  }
  uint64_t left() const override { return bytes_.size() - at_; }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

Session::Options options(uint64_t memory_limit = 0) {
  register_backends(1, 0);
  Session::Options options;
  options.id = 1;
  options.key = std::string(32, 'k');
  options.client = "a test";
  options.memory_limit = memory_limit;
  return options;
}

v1::Reply execute(Session& session, const v1::Frame& frame) {
  v1::Reply reply;
  session.execute(frame, &reply);
  EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
  return reply;
}

// A parameter 1, a view 3 of a product 2, a leaf 5 with a gradient, and an error 6.
v1::Frame first_frame() {
  v1::Frame frame;
  frame.set_sequence(1);
  literal(&frame, 1, {4}, {1, 2, 3, 4});
  Instruction(&frame, "requires_grad").handle(1).boolean(true);
  Instruction(&frame, "mul").handle(1).handle(1).result(2);
  Instruction(&frame, "sum").handle(2).none().boolean(false).none().result(3);
  literal(&frame, 4, {2}, {5, 6});
  literal(&frame, 5, {3}, {1, 1, 1});
  Instruction(&frame, "add").handle(4).handle(5).result(6);  // the sizes differ
  return frame;
}

v1::Frame second_frame() {
  v1::Frame frame;
  frame.set_sequence(2);
  Instruction(&frame, "backward")
      .handles({3})
      .handles({})
      .handles({1})
      .boolean(true)
      .boolean(false)
      .boolean(false)
      .result(10, 1);
  read(&frame, 1, 10);
  read(&frame, 2, 6);
  read(&frame, 3, 1);
  return frame;
}

std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

std::string image_of(Session& session) {
  EXPECT_TRUE(session.hold(soon()).ok());
  StringSink sink;
  session.write_image(&sink);
  session.release();
  return sink.bytes;
}

void read_image(Session& session, const std::string& bytes) {
  StringSource source(bytes);
  read_record(&source);
  session.read_image(&source);
}

TEST(SessionImage, ContinuesWithTheSameBits) {
  Session session(options());
  execute(session, first_frame());
  const std::string bytes = image_of(session);
  StringSource source(bytes);
  const SessionRecord record = read_record(&source);
  EXPECT_EQ(record.executed, 1u);
  EXPECT_EQ(record.client, "a test");
  EXPECT_EQ(record.key_digest, std::string(32, 'k'));
  Session restored(options());
  restored.read_image(&source);
  EXPECT_EQ(restored.executed(), 1u);
  EXPECT_EQ(restored.status().handles(), session.status().handles());
  EXPECT_EQ(restored.status().held_bytes(), session.status().held_bytes());
  const v1::Reply expected = execute(session, second_frame()), got = execute(restored, second_frame());
  EXPECT_EQ(got.SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(floats_of(got.reads(0).data()), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_TRUE(got.reads(1).has_error());
  // A frame that was executed before the image was written is answered again, and not executed.
  EXPECT_EQ(execute(restored, second_frame()).SerializeAsString(), expected.SerializeAsString());
}

TEST(SessionImage, FramesWaitWhileTheSessionIsHeld) {
  Session session(options());
  ASSERT_TRUE(session.hold(soon()).ok());
  std::atomic<bool> done{false};
  std::thread client([&] {
    execute(session, first_frame());
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(done);
  session.release();
  client.join();
  EXPECT_EQ(session.executed(), 1u);
}

TEST(SessionImage, AHeldSessionCanBeClosed) {
  Session session(options());
  ASSERT_TRUE(session.hold(soon()).ok());
  v1::Reply reply;
  std::thread client([&] { session.execute(first_frame(), &reply); });
  session.close();
  client.join();
  EXPECT_TRUE(reply.has_fault());
}

TEST(SessionImage, ExceedsNoMemoryLimit) {
  Session session(options());
  v1::Frame frame;
  frame.set_sequence(1);
  Instruction(&frame, "zeros").integers({1 << 20}).integer(static_cast<int64_t>(DType::kFloat32)).integer(0).result(1);
  execute(session, frame);
  const std::string bytes = image_of(session);
  Session small(options(1 << 20));
  EXPECT_THROW(read_image(small, bytes), Error);
  EXPECT_EQ(small.account()->held(), 0u);
}

TEST(SessionImage, DamagedBytesAreRefused) {
  Session session(options());
  execute(session, first_frame());
  const std::string bytes = image_of(session);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    Session restored(options());
    EXPECT_THROW(read_image(restored, damaged), Error) << "byte " << i;
    Session shorter(options());
    EXPECT_THROW(read_image(shorter, bytes.substr(0, i)), Error) << i << " bytes";
  }
}

// The number as an image holds it: seven bits per byte, the lowest first.
std::string encoded(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// The node of `exp`, which saves its result, becomes one of every other operator, whose formula reads other values.
TEST(SessionImage, NodesOfOtherOperatorsAreRefusedOrRun) {
  Session session(options());
  v1::Frame frame = first_frame();
  Instruction(&frame, "exp").handle(1).result(7);
  execute(session, frame);
  v1::Frame backward;
  backward.set_sequence(2);
  Instruction(&backward, "backward")
      .handles({7})
      .handles({1})
      .handles({1})
      .boolean(true)
      .boolean(false)
      .boolean(false)
      .result(10, 1);
  const std::string bytes = image_of(session);
  int refused = 0, run = 0;
  for (const Op* const op : all_ops()) {
    const std::string from = encoded(find_op("exp")->id), to = encoded(op->id);
    for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1)) {
      if (from.size() != to.size()) break;  // another size of the part
      std::string changed = bytes;
      changed.replace(at, from.size(), to);
      testing::seal_image(&changed);
      Session restored(options());
      try {
        read_image(restored, changed);
      } catch (const Error&) {
        ++refused;
        continue;
      }
      v1::Reply reply;
      restored.execute(backward, &reply);
      ++run;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(run, 0);
}

}  // namespace
}  // namespace tt::server
