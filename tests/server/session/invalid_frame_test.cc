// Invalid frames: each is rejected with a specific fault, ends its own session, and affects no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "server/session/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using testing::add;
using testing::engine_bytes;
using testing::Instruction;
using testing::literal;
using testing::read;

struct InvalidFrame {
  const char* name;
  std::function<void(v1::Frame*)> build;  // tensors 1 (sizes [2]) and 2 (poisoned) exist
  const char* message;                    // substring of the fault
};

void PrintTo(const InvalidFrame& invalid, std::ostream* out) { *out << invalid.name; }

class InvalidFrameTest : public ::testing::TestWithParam<InvalidFrame> {
 protected:
  InvalidFrameTest() { testing::start_engine(); }
};

v1::Reply run(Session& session, v1::Frame frame) {
  v1::Reply reply;
  frame.set_sequence(session.executed() + 1);
  session.execute(frame, &reply);
  return reply;
}

v1::Frame valid_frame() {
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 3, {3}, {1, 2, 3});
  add(&frame, 2, 1, 3);
  return frame;
}

TEST_P(InvalidFrameTest, IsFaultOfItsSession) {
  uint64_t before = engine_bytes();
  Session::Options options;
  options.limits.max_instructions = 100;
  Session bystander(options), sender(options);
  ASSERT_FALSE(run(bystander, valid_frame()).has_fault());
  ASSERT_FALSE(run(sender, valid_frame()).has_fault());
  uint64_t bystanders = bystander.status().held_bytes();

  v1::Frame frame;
  GetParam().build(&frame);
  v1::Reply reply = run(sender, frame);
  ASSERT_TRUE(reply.has_fault());
  EXPECT_THAT(reply.fault().message(), ::testing::HasSubstr(GetParam().message));
  EXPECT_TRUE(sender.over());
  EXPECT_EQ(sender.status().held_bytes(), 0u);
  EXPECT_EQ(engine_bytes(), before + bystanders);
  EXPECT_TRUE(run(sender, v1::Frame()).has_fault());

  v1::Frame valid;
  add(&valid, 10, 1, 1);
  EXPECT_FALSE(run(bystander, valid).has_fault());
}

const InvalidFrame kInvalidFrames[] = {
    {"UnknownOperator", [](auto* f) { Instruction(f, 65000).result(9); }, "operator 65000 is unknown"},
    {"OperatorBeyondIds", [](auto* f) { Instruction(f, 0xffffffffu).result(9); }, "is unknown"},
    {"TooManyArguments", [](auto* f) { add(f, 9, 1, 1).real(1).real(1).real(1); },
     "expected at most 3 arguments, got 5"},
    {"MissingArgument", [](auto* f) { Instruction(f, "add").handle(1).result(9); }, "argument 'other'"},
    {"WrongKind", [](auto* f) { Instruction(f, "add").handle(1).bytes("x").result(9); }, "argument 'other'"},
    {"ListForTensor", [](auto* f) { Instruction(f, "add").handle(1).handles({1}).result(9); }, "argument 'other'"},
    {"TensorForInts", [](auto* f) { Instruction(f, "literal").bytes("").handle(1).integer(8).integer(0).result(9); },
     "argument 'size'"},
    {"NoSuchDType",
     [](auto* f) { Instruction(f, "literal").bytes("").integers({0}).integer(250).integer(0).result(9); }, "'dtype'"},
    {"NoSuchDevice",
     [](auto* f) { Instruction(f, "literal").bytes("").integers({0}).integer(8).integer(0x7f00).result(9); }, "evice"},
    {"IntegerAsDefaultDtype", [](auto* f) { add(f, 9, 1, 1).default_dtype(DType::kInt64); }, "the default dtype"},
    {"Float8AsDefaultDtype", [](auto* f) { add(f, 9, 1, 1).default_dtype(DType::kFloat8E5m2); }, "got number 16"},
    {"NoSuchDefaultDtype", [](auto* f) { add(f, 9, 1, 1).default_dtype(static_cast<DType>(250)); }, "got number 250"},
    {"UnknownHandle", [](auto* f) { add(f, 9, 1, 4711); }, "4711"},
    {"HandleZero", [](auto* f) { add(f, 9, 1, 0); }, "0"},
    {"NameInUse", [](auto* f) { add(f, 1, 1, 1); }, "in use"},
    {"NameOfAPoisonInUse", [](auto* f) { add(f, 2, 1, 1); }, "in use"},
    {"NamedTwice", [](auto* f) { add(f, 9, 1, 1), add(f, 9, 1, 1); }, "in use"},
    {"NoResult", [](auto* f) { Instruction(f, "add").handle(1).handle(1); }, "expected 1 result names"},
    {"TwoResults", [](auto* f) { Instruction(f, "add").handle(1).handle(1).result(9, 2); }, "expected 1 result names"},
    {"EndlessResults", [](auto* f) { Instruction(f, "add").handle(1).handle(1).result(9, 0xffffffffu); }, "at most"},
    {"NamesOverTheEnd", [](auto* f) { Instruction(f, "add").handle(1).handle(1).result(UINT64_MAX, 2); },
     "result names exceed 64 bits"},
    {"UnknownOutTensor", [](auto* f) { Instruction(f, "add").handle(1).handle(1).into(99); }, "99"},
    {"OutTensorsAndNames", [](auto* f) { Instruction(f, "add").handle(1).handle(1).into(1).result(9); }, "got both"},
    {"DropsWhatIsNotThere", [](auto* f) { add(f, 9, 1, 1).release(1234); }, "1234"},
    {"DropsTwice", [](auto* f) { f->add_release(1), f->add_release(1); }, "handle 1"},
    {"UsesWhatItDropped", [](auto* f) { add(f, 9, 1, 1).release(1); }, "1"},
    {"ReadsNothing", [](auto* f) { read(f, 1, 4711); }, "handle 4711 is not in use"},
    {"LiteralBeyondInline", [](auto* f) { literal(f, 9, {20000}, std::vector<float>(20000)); }, "inline bytes, got"},
    {"TooManyInstructions",
     [](auto* f) {
       for (uint64_t i = 0; i < 101; ++i) add(f, 100 + i, 1, 1);
     },
     "at most 100"},
};

INSTANTIATE_TEST_SUITE_P(All, InvalidFrameTest, ::testing::ValuesIn(kInvalidFrames),
                         [](const auto& test) { return std::string(test.param.name); });

// Calls that the client's rules reject before sending: an error of the operation, stored in its result.
struct OversizedCall {
  const char* name;
  std::function<void(v1::Frame*)> build;  // creates tensor 9
};
void PrintTo(const OversizedCall& sizes, std::ostream* out) { *out << sizes.name; }

class OversizedCallTest : public ::testing::TestWithParam<OversizedCall> {
 protected:
  OversizedCallTest() { testing::start_engine(); }
};

TEST_P(OversizedCallTest, IsErrorOfItsResult) {
  uint64_t before = engine_bytes();
  Session::Options options;
  options.transfer_timeouts = {std::chrono::milliseconds(1), std::chrono::milliseconds(1)};
  options.memory_limit = 1 << 20;
  Session session(options);
  v1::Frame frame;
  GetParam().build(&frame);
  read(&frame, 1, 9);
  v1::Reply reply = run(session, frame);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  ASSERT_TRUE(reply.reads(0).has_error()) << reply.reads(0).ShortDebugString();
  session.close();
  EXPECT_EQ(engine_bytes(), before);
}

constexpr int64_t kHuge = INT64_MAX;
const OversizedCall kOversizedCalls[] = {
    {"LiteralTooShort",
     [](auto* f) {
       literal(f, 9, {3}, {1, 2});
     }},
    {"LiteralTooLong",
     [](auto* f) {
       literal(f, 9, {1}, {1, 2});
     }},
    {"LiteralNegative", [](auto* f) { literal(f, 9, {-1}, {}); }},
    {"LiteralNegativeTwice",
     [](auto* f) {
       literal(f, 9, {-2, -1}, {1, 2});
     }},
    {"LiteralOverflows",
     [](auto* f) {
       literal(f, 9, {kHuge, kHuge}, {1});
     }},
    {"LiteralWrapsToZero",
     [](auto* f) {
       literal(f, 9, {int64_t{1} << 32, int64_t{1} << 32}, {});
     }},
    {"LiteralWrapsToItsBytes", [](auto* f) { literal(f, 9, {(int64_t{1} << 62) + 1}, {1}); }},
    {"UploadedNegative", [](auto* f) { testing::uploaded(f, 9, 1, {-5}); }},
    {"UploadedOverflows",
     [](auto* f) {
       testing::uploaded(f, 9, 1, {kHuge, 2});
     }},
    {"Outer",
     [](auto* f) {
       testing::Instruction(f, "literal").bytes(std::string(512, 1)).integers({512, 1}).integer(1).integer(0).result(1);
       testing::Instruction(f, "literal").bytes(std::string(4096, 1)).integers({4096}).integer(1).integer(0).result(2);
       add(f, 9, 1, 2);
     }},
};

INSTANTIATE_TEST_SUITE_P(All, OversizedCallTest, ::testing::ValuesIn(kOversizedCalls),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tt::server
