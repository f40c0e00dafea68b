// Hostile clients of operators of a library (engine/extension/): calls with wrong arguments, in frames and in Programs,
// end in a fault or an error of the result; they affect no other session, and the engine keeps no memory of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/dispatch/dispatcher.h"
#include "engine/extension/library.h"
#include "engine/schema/custom_table.h"
#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using testing::engine_bytes;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::Instruction;
using testing::literal;
using testing::read;

int write_nothing(const teletensor_host*, teletensor_call*) { return 0; }

// Reads every argument of hostile::all, in every way.
int read_all(const teletensor_host* host, teletensor_call* call) {
  double sum = 0;
  for (int argument = -1; argument < 8; ++argument) {
    sum += host->is_none(call, argument) + host->number(call, argument) +
           static_cast<double>(host->integer(call, argument) & 1);
    const int64_t length = host->length(call, argument);
    for (int64_t i = 0; i < length && i < 100; ++i) {
      if (const teletensor_tensor* t = host->list_tensor(call, argument, i)) sum += static_cast<double>(t->numel);
      if (const int64_t* numbers = host->integers(call, argument)) sum += static_cast<double>(numbers[i] & 1);
      if (const double* numbers = host->numbers(call, argument)) sum += numbers[i];
      if (const char* text = host->text(call, argument)) sum += text[i];
    }
    if (const teletensor_tensor* t = host->tensor(call, argument)) {
      if (t->numel > 0 && t->dtype == TELETENSOR_FLOAT32) sum += static_cast<const float*>(t->data)[t->numel - 1];
    }
  }
  const teletensor_tensor* out = host->result(call, 0);
  if (out->numel > 0 && out->dtype == TELETENSOR_FLOAT32) static_cast<float*>(out->data)[0] = static_cast<float>(sum);
  return 0;
}
// Results of the sizes and the dtype that the client names.
int as_asked(const teletensor_host* host, teletensor_call* call) {
  return host->set_result(call, 0, host->integers(call, 2), host->length(call, 2),
                          static_cast<int32_t>(host->integer(call, 5)));
}

// Loads the library once and returns the id of an operator of it.
uint32_t id_of(std::string_view name) {
  static const teletensor_operator kRows[] = {
      {"hostile::all(Tensor a, Tensor[] b, int[] n, float s=1.0, str t=\"x\", ScalarType d=float32) -> Tensor", nullptr,
       nullptr, nullptr, as_asked, read_all, nullptr, nullptr, "none", 0},
      {"hostile::blank(int[] n) -> Tensor", nullptr, "n", "uint8", nullptr, write_nothing, nullptr, nullptr, "none", 0},
      {"hostile::two(Tensor x) -> (Tensor, Tensor)", nullptr, "same(x); [x.size(0) * 2]", nullptr, nullptr,
       write_nothing, nullptr, nullptr, "x: g0 + hostile::scaled(g1, 2)", 0},
      {"hostile::scaled(Tensor x, Scalar s) -> Tensor", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
       "x * -s / (1 + abs(x))", nullptr, 0},
  };
  static const teletensor_library kLibrary = {TELETENSOR_OPERATOR_ABI, sizeof(teletensor_operator), "hostile", kRows,
                                              4};
  static const bool loaded =
      (testing::start_engine(), extension::add_library(&kLibrary, "hostile.so", 1, Dispatcher::instance()), true);
  static_cast<void>(loaded);
  return find_custom_op(name)->op().id;
}

class Call : public Instruction {
 public:
  Call(v1::Frame* frame, std::string_view name) : Instruction(frame, id_of(name)) {}
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
  Call(&frame, "hostile::scaled").handle(1).integer(-1).result(2);
  return frame;
}

struct Attack {
  const char* name;
  std::function<void(v1::Frame*)> build;  // tensor 1 (sizes [2]) exists; the result is 9
  const char* message;                    // substring of the fault or of the result's error
};
void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;

class CustomOperatorsTest : public ::testing::TestWithParam<Attack> {};

TEST_P(CustomOperatorsTest, FaultEndsOneSession) {
  id_of("hostile::all");
  const uint64_t before = engine_bytes();
  Session bystander({}), sender({});
  ASSERT_FALSE(run(bystander, valid_frame()).has_fault());
  ASSERT_FALSE(run(sender, valid_frame()).has_fault());
  v1::Frame frame;
  GetParam().build(&frame);
  const v1::Reply reply = run(sender, frame);
  ASSERT_TRUE(reply.has_fault());
  EXPECT_THAT(reply.fault().message(), HasSubstr(GetParam().message));
  EXPECT_TRUE(sender.over());
  v1::Frame after;
  read(&after, 1, 2);
  EXPECT_EQ(floats_of(run(bystander, after).reads(0).data()), (std::vector<float>{0.5, 2.0f / 3}));
  bystander.close();
  EXPECT_EQ(engine_bytes(), before);
}

const Attack kFaults[] = {
    {"UnknownId", [](auto* f) { Instruction(f, 0x8000 ^ (id_of("hostile::all") == 0x8000)).result(9); }, "is unknown"},
    {"LastId", [](auto* f) { Instruction(f, 0xffff - (id_of("hostile::all") == 0xffff)).result(9); }, "is unknown"},
    {"BeyondIds", [](auto* f) { Instruction(f, 0x10000 + id_of("hostile::all")).result(9); }, "is unknown"},
    {"NoArguments", [](auto* f) { Call(f, "hostile::all").result(9); }, "argument 'a'"},
    {"TooMany", [](auto* f) { Call(f, "hostile::two").handle(1).handle(1).result(9, 2); }, "at most 1 argument"},
    {"IntForTensor", [](auto* f) { Call(f, "hostile::two").integer(1).result(9, 2); }, "argument 'x'"},
    {"NoneForTensor", [](auto* f) { Call(f, "hostile::two").none().result(9, 2); }, "argument 'x'"},
    {"ListForTensor", [](auto* f) { Call(f, "hostile::two").handles({1}).result(9, 2); }, "argument 'x'"},
    {"TensorForList", [](auto* f) { Call(f, "hostile::all").handle(1).handle(1).integers({}).result(9); },
     "argument 'b'"},
    {"NoneInList", [](auto* f) { Call(f, "hostile::all").handle(1).handles({0}).integers({}).result(9); }, "'b'"},
    {"StringForInts", [](auto* f) { Call(f, "hostile::blank").bytes("x").result(9); }, "argument 'n'"},
    {"UnknownDtype",
     [](auto* f) {
       Call(f, "hostile::all").handle(1).handles({}).integers({}).real(1).bytes("").integer(250).result(9);
     },
     "argument 'd'"},
    {"NoResults", [](auto* f) { Call(f, "hostile::two").handle(1); }, "expected 2 result names"},
    {"OneResult", [](auto* f) { Call(f, "hostile::two").handle(1).result(9); }, "expected 2 result names"},
    {"OneTarget", [](auto* f) { Call(f, "hostile::two").handle(1).into(1); }, "2"},
    {"UnknownHandle", [](auto* f) { Call(f, "hostile::two").handle(4711).result(9, 2); }, "4711"},
};
INSTANTIATE_TEST_SUITE_P(All, CustomOperatorsTest, ::testing::ValuesIn(kFaults),
                         [](const auto& test) { return std::string(test.param.name); });

class CustomOperatorErrorsTest : public CustomOperatorsTest {};

TEST_P(CustomOperatorErrorsTest, IsErrorOfTheResult) {
  id_of("hostile::all");
  const uint64_t before = engine_bytes();
  Session::Options options;
  options.memory_limit = 1 << 20;
  Session session(options);
  ASSERT_FALSE(run(session, valid_frame()).has_fault());
  v1::Frame frame;
  GetParam().build(&frame);
  read(&frame, 1, 9);
  read(&frame, 2, 2);
  const v1::Reply reply = run(session, frame);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  ASSERT_TRUE(reply.reads(0).has_error()) << reply.reads(0).ShortDebugString();
  EXPECT_THAT(reply.reads(0).error().message(), HasSubstr(GetParam().message));
  EXPECT_EQ(floats_of(reply.reads(1).data()), (std::vector<float>{0.5, 2.0f / 3}));
  session.close();
  EXPECT_EQ(engine_bytes(), before);
}

void blank(v1::Frame* f, const std::vector<int64_t>& sizes) { Call(f, "hostile::blank").integers(sizes).result(9); }
void ruled(v1::Frame* f, const std::vector<int64_t>& sizes) {
  Call(f, "hostile::all").handle(1).handles({1, 1}).integers(sizes).result(9);
}
// A question of custom_operators.
void ask(v1::Frame* f, const std::vector<int64_t>& query) {
  Instruction(f, "custom_operators").integers(query).result(9);
}
int64_t two() { return id_of("hostile::two"); }

const Attack kErrors[] = {
    {"Huge", [](auto* f) { blank(f, {kMax}); }, "memory"},
    {"Overflow",
     [](auto* f) {
       blank(f, {kMax, kMax});
     },
     "overflow"},
    {"OverflowWithZero",
     [](auto* f) {
       blank(f, {0, kMax, kMax});
     },
     "overflow"},
    {"Negative", [](auto* f) { blank(f, {kMin}); }, "negative dimension"},
    {"Dimensions", [](auto* f) { blank(f, std::vector<int64_t>(1000, 1)); }, "at most 64 dimensions"},
    {"RuleHuge", [](auto* f) { ruled(f, {int64_t{1} << 40}); }, "memory"},
    {"RuleOverflow",
     [](auto* f) {
       ruled(f, {0, kMax, kMax});
     },
     "too large"},
    {"RuleNegative", [](auto* f) { ruled(f, {-1}); }, "negative size"},
    {"RuleDimensions", [](auto* f) { ruled(f, std::vector<int64_t>(1000, 1)); }, "dimensions"},
    {"QueryOfNothing", [](auto* f) { ask(f, {-1}); }, "expected the number of a custom operator"},
    {"QueryOfAnother",
     [](auto* f) {
       ask(f, {find_op("relu")->id, 1, 0, 8, 0});
     },
     "expected a custom operator"},
    {"QueryCut", [](auto* f) { ask(f, {two()}); }, "malformed"},
    {"QueryOfManyDimensions",
     [](auto* f) {
       ask(f, {two(), 1, kMax, 8, 0});
     },
     "malformed"},
    {"QueryOfUnknownDtype",
     [](auto* f) {
       ask(f, {two(), 1, 0, 99, 0});
     },
     "malformed"},
    {"QueryOfUnknownDevice",
     [](auto* f) {
       ask(f, {two(), 1, 0, 8, kMax});
     },
     "evice"},
    {"QueryOfUnknownKind",
     [](auto* f) {
       ask(f, {two(), 256 + 1, 0, 8, 0});
     },
     "malformed"},
    {"QueryOfALongList",
     [](auto* f) {
       ask(f, {id_of("hostile::blank"), 7, kMax});
     },
     "malformed"},
    {"QueryOfHugeSizes",
     [](auto* f) {
       ask(f, {two(), 1, 3, 8, 0, 0, kMax, kMax, 1, 1, 1});
     },
     "malformed"},
    {"QueryThatOverflows",
     [](auto* f) {
       ask(f, {two(), 1, 1, 8, 0, kMax, 1});
     },
     "exceeds 64 bits"},
    {"QueryOfTheWrongKind",
     [](auto* f) {
       ask(f, {two(), 5, 1});
     },
     "argument 'x'"},
    {"StepOfAChain",
     [](auto* f) {
       Instruction(f, "pointwise_chain").handles({1}).integers({id_of("hostile::scaled"), 0, 0, 0}).result(9);
     },
     "pointwise_chain accepts only pointwise operators"},
};
INSTANTIATE_TEST_SUITE_P(All, CustomOperatorErrorsTest, ::testing::ValuesIn(kErrors),
                         [](const auto& test) { return std::string(test.param.name); });

// A result that a kernel leaves unwritten holds nothing of another tenant.
TEST(CustomOperatorMemoryTest, UnwrittenResultsHoldNothingOfOthers) {
  constexpr int64_t kSize = 3 << 20;
  id_of("hostile::blank");
  for (int round = 0; round < 3; ++round) {
    Session secret({});
    v1::Frame fill;
    Instruction(&fill, "full").integers({kSize}).integer(0x5a).integer(static_cast<int64_t>(DType::kUInt8)).result(1);
    read(&fill, 1, 1);
    ASSERT_FALSE(run(secret, fill).has_fault());
    secret.close();
    Session curious({});
    v1::Frame look;
    Call(&look, "hostile::blank").integers({kSize}).result(1);
    Instruction(&look, "sum").handle(1).result(2);
    read(&look, 1, 2);
    const v1::Reply reply = run(curious, look);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
    ASSERT_FALSE(reply.reads(0).has_error()) << reply.reads(0).error().message();
    EXPECT_EQ(reply.reads(0).data(), std::string(8, '\0'));
    curious.close();
  }
}

// An instruction of a library's operator with arguments of random kinds and values; names are 1 to 12.
void add_random(v1::Frame* frame, std::mt19937& random, uint64_t* next) {
  const auto below = [&](uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(random); };
  const auto number = [&]() -> int64_t {
    constexpr int64_t kNumbers[] = {0, 1, 2, 3, 8, 64, -1, 1000, int64_t{1} << 40, kMin, kMax};
    return kNumbers[below(std::size(kNumbers))];
  };
  const char* const names[] = {"hostile::all", "hostile::blank", "hostile::two", "hostile::scaled"};
  const Op& op = find_custom_op(std::string_view(names[below(4)]))->op();
  Instruction made(frame, op.id);
  for (const Param& param : op.params) {
    if (param.has_default && below(3) == 0) break;
    switch (below(8) == 0 ? static_cast<ParamType>(below(11)) : param.type) {  // sometimes of a wrong type
      case ParamType::kTensor: made.handle(1 + below(2)); break;
      case ParamType::kTensors: made.handles(std::vector<uint64_t>(below(4), 1 + below(2))); break;
      case ParamType::kInts: {
        std::vector<int64_t> list;
        for (uint32_t n = below(4); n > 0; --n) list.push_back(number());
        made.integers(list);
        break;
      }
      case ParamType::kFloat: made.real(static_cast<double>(number())); break;
      case ParamType::kString: made.bytes(std::string(below(5), 'q')); break;
      case ParamType::kBool: made.boolean(below(2) != 0); break;
      case ParamType::kDType: made.integer(below(19)); break;
      default: made.integer(number());
    }
  }
  made.result(*next, static_cast<uint32_t>(op.num_outputs));
  *next += static_cast<uint64_t>(op.num_outputs);
}

TEST(CustomOperatorMutationTest, RandomCallsEndInAReply) {
  id_of("hostile::all");
  const uint64_t before = engine_bytes();
  int faults = 0, answers = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    Session::Options options;
    options.memory_limit = 1 << 20;
    options.transfer_timeouts = {std::chrono::milliseconds(1), std::chrono::milliseconds(1)};
    Session session(options);
    v1::Frame frame, program;
    literal(&frame, 1, {2}, {1, 2});
    literal(&frame, 2, {1, 3}, {1, 2, 3});
    uint64_t next = 3;
    v1::Frame* const target = seed % 2 ? &program : &frame;
    for (int i = 0; i < 3; ++i) add_random(target, random, &next);
    if (seed % 2) {  // the same, as a Program of the inputs 1 and 2
      read(&program, 1, 3);
      const std::string bytes = program.SerializeAsString();
      Instruction(&frame, "literal")
          .bytes(bytes)
          .integers({static_cast<int64_t>(bytes.size())})
          .integer(1)
          .integer(0)
          .result(40);
      Instruction(&frame, "define_program").handle(40).integer(7).integer(2).integer(0).boolean(true);
      for (uint64_t result : {50, 51})
        Instruction(&frame, "run_program").handles({1, 2}).handles({}).integer(7).result(result);
      read(&frame, 1, 50);
    } else {
      read(&frame, 1, 3);
    }
    const v1::Reply reply = run(session, frame);
    ASSERT_TRUE(reply.has_fault() || reply.reads_size() == 1) << seed;
    reply.has_fault() ? ++faults : ++answers;
    session.close();
    ASSERT_EQ(engine_bytes(), before) << seed;
  }
  EXPECT_GT(faults, 100);
  EXPECT_GT(answers, 100);
}

}  // namespace
}  // namespace tt::server
