// Program as a value: copies, equality, slot names, text, uses and definitions.
#include "engine/schema/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/hash/hash.h"
#include "engine/program/chain_code.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Op& op(uint16_t id) { return *find_op(id); }

// Has every kind of argument, in memory that is freed when the function returns.
Program sample(Slot first = 1, double number = 2) {
  Program program;
  {
    const std::vector<int64_t> sizes = {2, 3};
    const std::vector<double> reals = {0.5, -1};
    const std::string text = "floor";
    const std::vector<Slot> list = {first, 0, first + 1};
    Arg slots;
    slots.kind = Arg::Kind::kSlots;
    slots.size = 3;
    slots.slots = list.data();
    const Slot sum[] = {first + 2}, quotient[] = {first + 3}, both[] = {first, first + 1};
    program.add(op(op_id::kAdd), {slot_arg(first), slot_arg(first + 1), Arg(number)}, sum).site = 7;
    program.add(op(op_id::kDiv), {slot_arg(first + 2), Arg(int64_t{3}), Arg(std::string_view(text))}, quotient, both);
    program.add(op(op_id::kReshape), {slot_arg(first + 3), Arg(absl::Span<const int64_t>(sizes))}, {{first + 4}});
    program.add(op(op_id::kCat), {slots, Arg(absl::Span<const double>(reals)), Arg(std::complex<double>(1, -2)), Arg()},
                {{first + 5}});
  }
  program.set_outputs({first + 5});
  program.set_release({first + 3, first + 4});
  return program;
}

TEST(ProgramTest, CopyOwnsItsData) {
  Program copy;
  std::string text;
  {
    const Program original = sample();
    text = to_string(original);
    copy = original;
    EXPECT_TRUE(copy == original);
  }
  EXPECT_EQ(to_string(copy), text);
  const Program moved = std::move(copy);
  EXPECT_EQ(to_string(moved), text);
  copy = sample(50);  // frees the memory of the first sample
  EXPECT_EQ(to_string(moved), text);
}

TEST(ProgramTest, EqualityIsStructural) {
  EXPECT_TRUE(sample() == sample());
  EXPECT_EQ(absl::HashOf(sample()), absl::HashOf(sample()));
  EXPECT_FALSE(sample(1, 2) == sample(1, 3));
  EXPECT_NE(sample(1, 2).fingerprint(), sample(1, 3).fingerprint());
  EXPECT_FALSE(sample(1) == sample(2));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(sample(1, nan) == sample(1, nan));
  EXPECT_FALSE(sample(1, 0.0) == sample(1, -0.0));
  Program other = sample();
  other.mutable_instructions()[0].site = 8;
  EXPECT_TRUE(other == sample()) << "source lines must not affect equality";
  other.mutable_instructions()[1].flags = 0;
  EXPECT_FALSE(other == sample());
  for (DType t : {DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    Program default_float = sample();
    default_float.mutable_instructions()[1].flags |= Instruction::flags_of(t);
    EXPECT_EQ(default_float.instructions()[1].default_float(), t);
    EXPECT_FALSE(default_float == sample());
    EXPECT_NE(default_float.fingerprint(), sample().fingerprint());
  }
  EXPECT_EQ(sample().instructions()[1].default_float(), DType::kFloat32);
  Program shorter = sample();
  shorter.mutable_instructions().pop_back();
  EXPECT_FALSE(shorter == sample());
}

TEST(ProgramTest, CanonicalNamesIdentifyRenamedPrograms) {
  EXPECT_TRUE(canonical(sample(1)) == canonical(sample(1000)));
  EXPECT_EQ(canonical(sample(1)).fingerprint(), canonical(sample(1000)).fingerprint());
  Program renamed = sample(1);
  renamed.rename([](Slot slot) { return slot + 999; });
  EXPECT_TRUE(renamed == sample(1000));
}

TEST(ProgramTest, PrintsOneLinePerInstruction) {
  EXPECT_EQ(to_string(sample()),
            "%3 = add(%1, %2, alpha=2)\n"
            "%4 = div(%3, other=3, rounding_mode='floor')  # drops %1, %2\n"
            "%5 = reshape(%4, shape=[2, 3])\n"
            "%6 = cat([%1, none, %2], dim=[0.5, -1], (1 + -2j), None)\n"
            "read %6\n"
            "drop %4, %5\n");
}

TEST(ProgramTest, UseDefsFindDefinitionsReadsAndReleases) {
  const UseDefs uses(sample());
  EXPECT_THAT(uses.inputs(), ElementsAre(1, 2));
  EXPECT_EQ(uses.find(1)->definition, UseDefs::kOutside);
  EXPECT_THAT(uses.find(1)->uses, ElementsAre(0, 3));
  EXPECT_EQ(uses.find(1)->release, 1);
  EXPECT_EQ(uses.find(3)->definition, 0);
  EXPECT_THAT(uses.find(3)->uses, ElementsAre(1));
  EXPECT_TRUE(uses.find(6)->is_output);
  EXPECT_THAT(uses.find(6)->uses, IsEmpty());
  EXPECT_EQ(uses.find(4)->release, UseDefs::kOutside);
  EXPECT_EQ(uses.find(99), nullptr);
}

TEST(ProgramTest, ClearKeepsOrdinaryCapacity) {
  Program program = sample();
  const uint64_t warm = program.bytes();
  program.clear();
  EXPECT_EQ(program.bytes(), warm);
  EXPECT_EQ(to_string(program), "");
  program.memory().allocate<int64_t>(1 << 20);
  EXPECT_GT(program.bytes(), 8u << 20);
  program.clear();
  EXPECT_LT(program.bytes(), 1u << 20);
}

// where(add(input 0, 2.5), input 1, 1+2j), encoded.
std::vector<int64_t> chain_code() {
  ChainWriter writer;
  writer.begin_step(op(op_id::kAdd), 3, 7, 2);
  writer.add_input(0);
  writer.add_value(Arg(2.5));
  writer.begin_step(op(op_id::kWhere), 4, 8, 3);
  writer.add_result(0);
  writer.add_input(1);
  writer.add_value(Arg(std::complex<double>(1, 2)));
  return {writer.code().begin(), writer.code().end()};
}

TEST(ProgramTest, SlotsReplaceTensorsInProgramsOnly) {
  const Param& tensor = op(op_id::kAdd).params[0];
  const Param& list = op(op_id::kCat).params[0];
  const Slot names[] = {1, 0};
  Arg slots;
  slots.kind = Arg::Kind::kSlots;
  slots.size = 2;
  slots.slots = names;
  EXPECT_TRUE(tensor.accepts_in_program(slot_arg(1)));
  EXPECT_FALSE(tensor.accepts_in_program(slot_arg(0)));
  EXPECT_FALSE(tensor.accepts(slot_arg(1)));
  EXPECT_FALSE(list.accepts_in_program(slots));  // 0 is an absent tensor, which only a list of optionals may have
  slots.size = 1;
  EXPECT_TRUE(list.accepts_in_program(slots));
  EXPECT_FALSE(list.accepts(slots));
  EXPECT_FALSE(tensor.accepts_in_program(slots));
  EXPECT_FALSE(tensor.accepts_in_program(Arg()));
  const TensorMeta meta;
  EXPECT_TRUE(tensor.accepts(Arg(&meta)));
  EXPECT_FALSE(tensor.accepts_in_program(Arg(&meta)));
}

TEST(ChainCodeTest, RoundTrip) {
  const std::vector<int64_t> code = chain_code();
  const CodedSteps steps = read_chain(code, 2);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].op->name, "add");
  EXPECT_EQ(steps[0].site, 3u);
  EXPECT_EQ(steps[0].result, 7u);
  EXPECT_THAT(steps[0].from, ElementsAre(0, -1, -1));
  EXPECT_EQ(steps[0].args[1].real, 2.5);
  EXPECT_EQ(steps[0].args.size(), steps[0].op->params.size()) << "defaults must be filled in";
  EXPECT_EQ(steps[1].op->name, "where");
  EXPECT_THAT(steps[1].from, ElementsAre(0, 1, -1));
  EXPECT_EQ(steps[1].args[2].imaginary, 2);
}

// Truncations and changed words give an error or a chain; sanitizers detect out-of-bounds reads.
TEST(ChainCodeTest, RejectsInvalidCode) {
  const std::vector<int64_t> code = chain_code();
  EXPECT_THROW(read_chain({}, 2), Error);
  EXPECT_THROW(read_chain(code, 1), Error);  // reads input 1
  for (size_t length = 1; length < code.size(); ++length) {
    try {
      read_chain(absl::MakeConstSpan(code).first(length), 2);
    } catch (const Error&) {
    }
  }
  for (size_t at = 0; at < code.size(); ++at) {
    for (int64_t word : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{9}, int64_t{255}, int64_t{1} << 39, INT64_MAX}) {
      for (int64_t low : {int64_t{0}, int64_t{7}, int64_t{8}, int64_t{9}}) {
        std::vector<int64_t> changed = code;
        changed[at] = (word & ~int64_t{0xff}) | low;
        try {
          for (const CodedStep& step : read_chain(changed, 2)) {
            for (const Arg& arg : step.args) EXPECT_LE(arg.kind == Arg::Kind::kInts ? arg.size : 0, code.size());
          }
        } catch (const Error&) {
        }
      }
    }
  }
  EXPECT_THROW(read_chain(code, kMaxChainInputs + 1), Error);
  for (int64_t index :
       {static_cast<int64_t>(kMaxChainInputs), int64_t{127}, int64_t{128}, int64_t{255}, int64_t{256}, int64_t{300}}) {
    std::vector<int64_t> far = code;
    far[4] = 1 | index << 8;  // the input of the first step
    EXPECT_THROW(read_chain(far, kMaxChainInputs), Error) << index;
    EXPECT_THROW(read_chain(far, 301), Error) << index;
  }
  std::vector<int64_t> no_pointwise = code;
  no_pointwise[0] = op_id::kMatmul;
  EXPECT_THROW(read_chain(no_pointwise, 2), Error);
  const auto chain_of = [](std::vector<uint16_t> ops, int64_t read) {
    ChainWriter writer;
    for (size_t i = 0; i < ops.size(); ++i) {
      writer.begin_step(*find_op(ops[i]), 1, i + 1, 1);
      i == 0 ? writer.add_input(0) : writer.add_result(read < 0 ? i - 1 : static_cast<size_t>(read));
    }
    return std::vector<int64_t>(writer.code().begin(), writer.code().end());
  };
  EXPECT_EQ(read_chain(chain_of({op_id::kNeg, op_id::kExp, op_id::kSum}, -1), 1).size(), 3u);
  EXPECT_THROW(read_chain(chain_of({op_id::kSum}, -1), 1), Error);
  EXPECT_THROW(read_chain(chain_of({op_id::kNeg, op_id::kSum, op_id::kExp}, -1), 1), Error);
  EXPECT_THROW(read_chain(chain_of({op_id::kNeg, op_id::kExp, op_id::kSum}, 0), 1), Error) << "skips a step";
  std::vector<int64_t> long_chain;
  for (size_t i = 0; i <= kMaxChainSteps; ++i) long_chain.insert(long_chain.end(), code.begin(), code.begin() + 7);
  EXPECT_THROW(read_chain(long_chain, 2), Error);
}

}  // namespace
}  // namespace tt
