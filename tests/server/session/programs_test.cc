// Programs that arrive over the wire: definitions, runs, what sessions of a principal share, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "server/session/program_cache.h"
#include "server/session/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using testing::engine_bytes;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::Instruction;
using testing::literal;
using testing::read;

class ProgramsTest : public ::testing::Test {
 protected:
  ProgramsTest() {
    testing::start_engine();
    bytes_before_ = engine_bytes();
  }
  ~ProgramsTest() override { EXPECT_EQ(engine_bytes(), bytes_before_); }

  uint64_t bytes_before_ = 0;
};

v1::Reply run(Session& session, v1::Frame frame) {
  v1::Reply reply;
  frame.set_sequence(session.executed() + 1);
  session.execute(frame, &reply);
  return reply;
}

// Defines Program `number` from bytes; uses the names from 1000 * number on for the pieces of a long definition, and
// the name `number` for the whole.
void define(v1::Frame* frame, int64_t number, const std::string& bytes, int64_t read_inputs, int64_t written) {
  constexpr size_t kPiece = 60'000;  // a literal has at most 64 KiB
  std::vector<uint64_t> pieces;
  for (size_t at = 0; at == 0 || at < bytes.size(); at += kPiece) {
    pieces.push_back(1000 * static_cast<uint64_t>(number) + pieces.size());
    const std::string piece = bytes.substr(at, kPiece);
    Instruction(frame, "literal")
        .bytes(piece)
        .integers({static_cast<int64_t>(piece.size())})
        .integer(static_cast<int64_t>(DType::kUInt8))
        .integer(0)
        .result(pieces.back());
  }
  Instruction(frame, "cat").handles(pieces).integer(0).result(static_cast<uint64_t>(number));
  Instruction definition(frame, "define_program");
  for (uint64_t piece : pieces) definition.release(piece);
  definition.handle(static_cast<uint64_t>(number)).integer(number).integer(read_inputs).integer(written).boolean(true);
}

// y = relu(x + x) of one input.
std::string doubled() {
  v1::Frame program;
  Instruction(&program, "add").handle(1).handle(1).result(2);
  Instruction(&program, "relu").handle(2).result(3).site(1);
  read(&program, 1, 3);
  v1::Site* site = program.add_sites();
  site->set_id(1);
  site->set_file("model.py");
  site->set_line(7);
  return program.SerializeAsString();
}

// x += y of one input that is read and one that is written.
std::string accumulate() {
  v1::Frame program;
  Instruction(&program, "add").handle(2).handle(1).into(2);
  return program.SerializeAsString();
}

// y = reshape(x, [size(x, 0) * size(x, 1)]) of one input; `change` may invalidate the size.
std::string flattened(const std::function<void(v1::SizeArgument*)>& change = [](v1::SizeArgument*) {}) {
  v1::Frame program;
  Instruction(&program, "view").handle(1).integers({6}).result(2);
  Instruction(&program, "add").handle(2).handle(2).result(3);
  read(&program, 1, 3);
  v1::SizeArgument* size = program.add_sizes();
  size->set_arg(1);
  for (int64_t number : {1, 0, 1, 1, 1, 1, 4, 0, 0}) size->add_terms(number);
  change(size);
  return program.SerializeAsString();
}

std::string error_of(const v1::Reply& reply) {
  return reply.has_fault() ? reply.fault().message() : reply.reads(0).error().message();
}

TEST_F(ProgramsTest, RunsAsOneInstruction) {
  Session session({});
  v1::Frame frame;
  define(&frame, 50, doubled(), 1, 0);
  literal(&frame, 1, {3}, {-1, 2, 3});
  Instruction(&frame, "run_program").handles({1}).handles({}).integer(50).result(2);
  Instruction(&frame, "drop_program").integer(50);
  Instruction(&frame, "run_program").handles({1}).handles({}).integer(50).result(3);
  read(&frame, 1, 2);
  read(&frame, 2, 3);
  const v1::Reply reply = run(session, frame);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(floats_of(reply.reads(0).data()), (std::vector<float>{0, 4, 6}));
  EXPECT_THAT(reply.reads(1).error().message(), HasSubstr("no Program has the number 50"));
}

TEST_F(ProgramsTest, ChangesOnlyWhatItMayChange) {
  Session session({});
  v1::Frame frame;
  define(&frame, 50, accumulate(), 1, 1);
  define(&frame, 51, accumulate(), 2, 0);
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {2}, {10, 20});
  Instruction(&frame, "run_program").handles({1}).handles({2}).integer(50);
  Instruction(&frame, "run_program").handles({1, 2}).handles({}).integer(51);
  // The written tensor's other view is an input that is read: the engine allows it, because the storage is among those
  // that may change.
  Instruction(&frame, "flatten").handle(2).result(3);
  Instruction(&frame, "run_program").handles({3}).handles({2}).integer(50);
  read(&frame, 1, 2);
  const v1::Reply reply = run(session, frame);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(floats_of(reply.reads(0).data()), (std::vector<float>{22, 44}));
}

struct BadDefinition {
  const char* name;
  std::string bytes;
  int64_t read, written;
  const char* message;
};

TEST_F(ProgramsTest, BadDefinitionsFailTheirRuns) {
  v1::Frame waiting, unknown, nested, sites, hooking, saving;
  testing::uploaded(&waiting, 2, 9, {2});
  Instruction(&unknown, 65000).handle(1).result(2);
  Instruction(&nested, "run_program").handles({1}).handles({}).integer(50).result(2);
  Instruction(&hooking, "hook").integer(7).handle(1);
  Instruction(&saving, "saved_begin").integer(1);
  v1::Frame outside[5];
  const char* const capability = "0123456789abcdef";
  Instruction(&outside[0], "publish").handles({1}).none().bytes("x").none().boolean(false).boolean(false).result(2);
  Instruction(&outside[1], "unpublish").bytes("x").none().result(2);
  Instruction(&outside[2], "share_export").handle(1).bytes(capability).real(1).result(2);
  Instruction(&outside[3], "share_import").bytes(capability).integers({2}).integer(8).integer(0).result(2);
  Instruction(&outside[4], "pull_offer").handle(1).bytes(capability).real(1).result(2);
  sites.add_sites()->set_id(3);
  std::string deep = doubled();
  deep.resize(deep.size() - 3);
  const std::vector<BadDefinition> definitions = {
      {"text", "not a frame", 1, 0, "expected the serialized frame of a Program"},
      {"cut", deep, 1, 0, "expected the serialized frame of a Program"},
      {"waits", waiting.SerializeAsString(), 1, 0, "waits for something outside"},
      {"operator", unknown.SerializeAsString(), 1, 0, "operator 65000 is unknown"},
      {"nested", nested.SerializeAsString(), 1, 0, "a Program cannot contain it"},
      {"hooking", hooking.SerializeAsString(), 1, 0, "[hook] changes the session's state"},
      {"saving", saving.SerializeAsString(), 1, 0, "[saved_begin] changes the session's state"},
      {"publish", outside[0].SerializeAsString(), 1, 0, "[publish] changes the session's state, or uses what"},
      {"unpublish", outside[1].SerializeAsString(), 1, 0, "[unpublish] changes the session's state"},
      {"share_export", outside[2].SerializeAsString(), 1, 0, "[share_export] changes the session's state"},
      {"share_import", outside[3].SerializeAsString(), 1, 0, "[share_import] changes the session's state"},
      {"pull_offer", outside[4].SerializeAsString(), 1, 0, "[pull_offer] changes the session's state"},
      {"sites", sites.SerializeAsString(), 1, 0, "expected source line 1"},
      {"inputs", doubled(), 0, 0, "expected a name that exists, got 1"},
      {"negative", doubled(), -1, 0, "expected a number of inputs"},
      {"many", doubled(), int64_t{1} << 40, 0, "expected a number of inputs"},
  };
  for (const BadDefinition& bad : definitions) {
    SCOPED_TRACE(bad.name);
    Session session({});
    v1::Frame frame;
    define(&frame, 50, bad.bytes, bad.read, bad.written);
    literal(&frame, 1, {2}, {1, 2});
    Instruction(&frame, "run_program").handles({1}).handles({}).integer(50).result(2);
    Instruction(&frame, "drop_program").integer(50);
    define(&frame, 51, doubled(), 1, 0);
    Instruction(&frame, "run_program").handles({1}).handles({}).integer(51).result(3);
    read(&frame, 1, 2);
    read(&frame, 2, 3);
    const v1::Reply reply = run(session, frame);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
    EXPECT_THAT(reply.reads(0).error().message(), HasSubstr(bad.message));
    EXPECT_EQ(floats_of(reply.reads(1).data()), (std::vector<float>{2, 4}));
  }
}

TEST_F(ProgramsTest, SizesAreComputedForEachRun) {
  Session session({});
  v1::Frame frame;
  define(&frame, 50, flattened(), 1, 0);
  literal(&frame, 1, {2, 3}, {1, 2, 3, 4, 5, 6});
  literal(&frame, 2, {2, 1}, {1, 2});
  literal(&frame, 3, {2}, {1, 2});
  for (uint64_t input : {1, 2, 3}) {
    Instruction(&frame, "run_program").handles({input}).handles({}).integer(50).result(10 + input);
    read(&frame, input, 10 + input);
  }
  const v1::Reply reply = run(session, frame);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(floats_of(reply.reads(0).data()), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(floats_of(reply.reads(1).data()), (std::vector<float>{2, 4}));
  EXPECT_THAT(reply.reads(2).error().message(), HasSubstr("expected a dimension of %1, which has 1, got 1"));
}

TEST_F(ProgramsTest, BadSizesFailTheirRuns) {
  struct BadSize {
    std::function<void(v1::SizeArgument*)> change;
    const char* message;
  };
  const std::vector<BadSize> sizes = {
      {[](v1::SizeArgument* size) { size->set_instruction(2); }, "expected sizes of instructions below 2, got 2"},
      {[](v1::SizeArgument* size) { size->set_arg(7); }, "expected an argument below 2, got 7"},
      {[](v1::SizeArgument* size) { size->set_arg(0); }, "expected an element of a list of integers"},
      {[](v1::SizeArgument* size) { size->set_element(1); }, "expected an element of a list of integers"},
      {[](v1::SizeArgument* size) { size->set_element(-1); }, "expected an integer"},
      {[](v1::SizeArgument* size) { size->set_terms(2, 2); }, "a value that the Program has defined, got %2"},
      {[](v1::SizeArgument* size) { size->set_terms(1, -1); }, "expected a dimension of %1"},
      {[](v1::SizeArgument* size) { size->set_terms(6, 9); }, "expected a kind of term below 9, got 9"},
      {[](v1::SizeArgument* size) { size->set_terms(6, 0); }, "expected one expression of sizes, got 3"},
      {[](v1::SizeArgument* size) { size->set_terms(3, 2); }, "lacks an operand"},
      {[](v1::SizeArgument* size) { size->clear_terms(); }, "expected one expression of sizes, got 0"},
      {[](v1::SizeArgument* size) { size->add_terms(1); }, "expected three numbers per term"},
      {[](v1::SizeArgument* size) { size->mutable_terms()->Resize(3 * 65, 0); }, "at most 64 terms"},
  };
  for (const BadSize& bad : sizes) {
    SCOPED_TRACE(bad.message);
    Session session({});
    v1::Frame frame;
    define(&frame, 50, flattened(bad.change), 1, 0);
    literal(&frame, 1, {2, 3}, {1, 2, 3, 4, 5, 6});
    Instruction(&frame, "run_program").handles({1}).handles({}).integer(50).result(2);
    read(&frame, 1, 2);
    const v1::Reply reply = run(session, frame);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
    EXPECT_THAT(reply.reads(0).error().message(), HasSubstr(bad.message));
  }
}

TEST_F(ProgramsTest, FramesHaveNoSizes) {
  Session session({});
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  frame.add_sizes();
  EXPECT_THAT(run(session, frame).fault().message(), HasSubstr("sizes are part of the definition of a Program"));
}

TEST_F(ProgramsTest, PoisonedDefinitionIsTheErrorOfRuns) {
  Session session({});
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {3}, {1, 2, 3});
  testing::add(&frame, 3, 1, 2);
  Instruction(&frame, "define_program").handle(3).integer(50).integer(1).integer(0);
  Instruction(&frame, "run_program").handles({1}).handles({}).integer(50).result(4);
  read(&frame, 1, 4);
  EXPECT_THAT(error_of(run(session, frame)), HasSubstr("add"));
}

TEST_F(ProgramsTest, SessionsOfAPrincipalShareByContent) {
  ProgramCache cache;
  const Programs::Entry one = cache.define("ann", {}, doubled(), {1, 0});
  EXPECT_EQ(cache.define("ann", {}, doubled(), {1, 0}), one);
  EXPECT_NE(cache.define("bob", {}, doubled(), {1, 0}), one);
  EXPECT_NE(cache.define("ann", {}, accumulate(), {1, 1}), one);
  EXPECT_THROW(cache.define("ann", {}, accumulate(), {1, 0}), Error);
}

// A principal's Programs take their place from its own, the oldest first; what a session still has is shared even then.
TEST_F(ProgramsTest, CacheIsBounded) {
  ProgramCache cache;
  const auto definition = [](int64_t i) {
    v1::Frame program;
    Instruction(&program, "add").handle(1).handle(1).result(2);
    for (int64_t k = 0; k < 2000; ++k) {
      Instruction(&program, "add")
          .handle(static_cast<uint64_t>(k + 2))
          .handle(1)
          .integer(i)
          .result(static_cast<uint64_t>(k + 3));
    }
    read(&program, 1, 2002);
    return program.SerializeAsString();
  };
  const Programs::Entry others = cache.define("bob", {}, definition(-1), {1, 0});
  const Programs::Entry first = cache.define("ann", {}, definition(0), {1, 0});
  std::weak_ptr<const DefinedProgram> second = cache.define("ann", {}, definition(1), {1, 0});
  for (int64_t i = 2; !second.expired() && i < 1000; ++i) cache.define("ann", {}, definition(i), {1, 0});
  EXPECT_TRUE(second.expired());
  EXPECT_LE(cache.bytes(), ProgramCache::kMaxPrincipalBytes + others->bytes());
  EXPECT_EQ(cache.define("ann", {}, definition(0), {1, 0}), first) << "a session still has it";
  EXPECT_EQ(cache.define("bob", {}, definition(-1), {1, 0}), others);
}

// Definitions are charged to the session, which cannot exceed its limit by them.
TEST_F(ProgramsTest, DefinitionsAreCharged) {
  Session::Options options;
  options.memory_limit = 8 << 20;
  Session session(options);
  const std::string bytes = [] {
    v1::Frame program;
    for (uint64_t k = 0; k < 1000; ++k) Instruction(&program, "relu").handle(k + 1).result(k + 2);
    read(&program, 1, 1001);
    return program.SerializeAsString();
  }();
  std::string message;
  int64_t number = 0;
  while (message.empty() && number < 4000) {
    v1::Frame frame;
    for (int i = 0; i < 10; ++i) define(&frame, ++number + 100, bytes, 1, 0);
    literal(&frame, 1, {1}, {1});
    frame.add_release(1);
    read(&frame, 1, 1);
    const v1::Reply reply = run(session, frame);
    if (reply.has_fault() || reply.reads(0).has_error()) message = error_of(reply);
  }
  EXPECT_THAT(message, HasSubstr("out of memory"));
  EXPECT_LT(number, 4000);
}

// A run's names are part of the session's bookkeeping, which its limit of memory includes.
TEST_F(ProgramsTest, NamesOfARunAreLimited) {
  v1::Frame program;
  std::vector<uint64_t> names;
  for (uint64_t k = 2; k <= 40'000; ++k) {
    Instruction(&program, "add").handle(1).handle(1).real(static_cast<double>(k)).result(k);
    names.push_back(k);
  }
  Instruction(&program, "cat").handles(names).integer(0).result(40'001);
  read(&program, 1, 40'001);
  for (uint64_t limit : {uint64_t{256} << 20, uint64_t{32} << 20}) {
    Session::Options options;
    options.memory_limit = limit;
    Session session(options);
    v1::Frame frame;
    define(&frame, 50, program.SerializeAsString(), 1, 0);
    literal(&frame, 1, {1}, {1});
    Instruction(&frame, "run_program").handles({1}).handles({}).integer(50).result(2);
    Instruction(&frame, "sum").handle(2).result(3);
    read(&frame, 1, 3);
    const v1::Reply reply = run(session, frame);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
    if (limit > uint64_t{100} << 20) {
      EXPECT_FALSE(reply.reads(0).has_error()) << reply.reads(0).error().message();
    } else {
      EXPECT_THAT(error_of(reply), HasSubstr("names that the Program has at this instruction"));
    }
  }
}

TEST_F(ProgramsTest, ExplanationsAreBounded) {
  v1::Frame program;
  for (uint64_t k = 1; k <= 50'000; ++k) Instruction(&program, "add").handle(k).handle(k).real(1.25).result(k + 1);
  read(&program, 1, 50'001);
  Session session({});
  v1::Frame frame;
  define(&frame, 50, program.SerializeAsString(), 1, 0);
  literal(&frame, 1, {1}, {1});
  Instruction(&frame, "explain_program").handles({1}).handles({}).integer(50).result(2);
  read(&frame, 1, 2);
  EXPECT_THAT(error_of(run(session, frame)), HasSubstr("exceeds 4194304 bytes"));
}

}  // namespace
}  // namespace tt::server
