// Ten thousand mutations of valid frames: whatever they say, the engine answers, and is left as it was.
//
// Deterministic: a failure names its number, and TT_MUTATION=<number> shows that one and runs it alone.
// TT_MUTATIONS=<count> goes on for longer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "server/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using testing::add;
using testing::Instruction;
using testing::literal;
using testing::read;
using Random = std::mt19937_64;

constexpr int kMutations = 10000;

v1::Frame first_frame() {
  v1::Frame frame;
  literal(&frame, 1, {2, 3}, {1, 2, 3, 4, 5, 6});
  literal(&frame, 2, {3}, {1, 2, 3});
  add(&frame, 3, 1, 2);
  frame.set_sequence(1);
  return frame;
}

// Every operator there is, on plausible arguments.
v1::Frame plausible_frame(Random& random) {
  v1::Frame frame;
  auto ops = all_ops();
  uint64_t name = 10;
  for (int i = 0; i < 6; ++i) {
    const Op& op = *ops[random() % ops.size()];
    Instruction instruction(&frame, op.id);
    for (const Param& param : op.params) {
      int64_t small = static_cast<int64_t>(random() % 4);
      switch (param.type) {
        case ParamType::kTensor: instruction.handle(1 + random() % 3); break;
        case ParamType::kTensors: instruction.handles({1, 2, 3}); break;
        case ParamType::kInts: instruction.integers({small, 2}); break;
        case ParamType::kString: instruction.bytes(std::string(24, 'x')); break;
        case ParamType::kFloat: instruction.real(0.5); break;
        case ParamType::kDType: instruction.integer(8); break;
        case ParamType::kDevice: instruction.integer(0); break;
        case ParamType::kFloats: instruction.none(); break;
        case ParamType::kBool: instruction.boolean(small % 2); break;
        case ParamType::kInt:
        case ParamType::kScalar: instruction.integer(small); break;
      }
    }
    int count = op.num_outputs < 0 ? 2 : op.num_outputs;
    if (count > 0) instruction.result(name, static_cast<uint32_t>(count));
    name += static_cast<uint64_t>(count);
  }
  read(&frame, 1, 3);
  frame.add_release(2);
  frame.set_sequence(2);
  return frame;
}

int64_t odd_number(Random& random) {
  static constexpr int64_t kOdd[] = {0, 1, -1, 2, 3, 64, 255, 256, 65536, INT32_MAX, INT64_MAX, INT64_MIN, 1ll << 40};
  return kOdd[random() % std::size(kOdd)];
}

void mutate_arg(v1::Argument* arg, Random& random) {
  switch (random() % 9) {
    case 0: arg->Clear(); break;
    case 1: arg->set_none(true); break;
    case 2: arg->set_handle(static_cast<uint64_t>(odd_number(random))); break;
    case 3: arg->set_integer(odd_number(random)); break;
    case 4: arg->set_real(static_cast<double>(odd_number(random)) * 1e300); break;
    case 5: arg->set_characters(std::string(random() % 100, 'y')); break;
    case 6: arg->mutable_integers()->add_values(odd_number(random)); break;
    case 7: arg->mutable_handles()->add_values(random() % 5); break;
    case 8: arg->mutable_reals()->add_values(0.1); break;
  }
}

void mutate_instruction(v1::Instruction* instruction, Random& random) {
  switch (random() % 7) {
    case 0: instruction->set_op(static_cast<uint32_t>(random() % 1200)); break;
    case 1: instruction->set_result(static_cast<uint64_t>(odd_number(random))); break;
    case 2: instruction->set_result_count(static_cast<uint32_t>(odd_number(random))); break;
    case 3: instruction->add_into(random() % 5); break;
    case 4: instruction->add_release(random() % 5); break;
    case 5: instruction->add_args(); break;
    default:
      if (instruction->args_size() != 0) {
        mutate_arg(
            instruction->mutable_args(static_cast<int>(random() % static_cast<size_t>(instruction->args_size()))),
            random);
      }
  }
}

// By the meaning of fields; or of bytes, where those still are a frame.
void mutate(v1::Frame* frame, Random& random) {
  if (random() % 4 != 0) {
    for (uint64_t i = 0, count = 1 + random() % 3; i < count; ++i) {
      mutate_instruction(frame->mutable_instructions(static_cast<int>(random() % 6)), random);
    }
    return;
  }
  std::string bytes = frame->SerializeAsString();
  for (uint64_t i = 0, count = 1 + random() % 4; i < count; ++i)
    bytes[random() % bytes.size()] = static_cast<char>(random());
  if (random() % 8 == 0) bytes.resize(random() % bytes.size());
  v1::Frame changed;
  if (changed.ParseFromString(bytes)) frame->Swap(&changed);
}

struct Tally {
  int refused = 0;
  uint64_t executed = 0;  // instructions
  uint64_t failed = 0;
};

void try_mutation(int number, Tally* tally) {
  Random random(static_cast<uint64_t>(number));
  Session::Options options;
  options.memory_limit = 64 << 20;
  options.patience = {std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
  Session session(options);
  v1::Reply reply;
  session.execute(first_frame(), &reply);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  v1::Frame frame = plausible_frame(random);
  mutate(&frame, random);
  reply.Clear();
  session.execute(frame, &reply);
  ASSERT_TRUE(reply.has_fault() == session.over() || frame.close());
  tally->refused += reply.has_fault();
  tally->executed += session.status().instructions();
  tally->failed += session.status().failed();
  session.close();
}

TEST(MutationTest, TheEngineStaysAliveAndAsItWas) {
  testing::start_engine();
  if (const char* one = std::getenv("TT_MUTATION")) {
    Random random(static_cast<uint64_t>(std::atoi(one)));
    v1::Frame frame = plausible_frame(random);
    mutate(&frame, random);
    std::cout << frame.DebugString();
    Tally tally;
    return try_mutation(std::atoi(one), &tally);
  }
  Tally tally;
  uint64_t before = testing::engine_bytes();
  const char* more = std::getenv("TT_MUTATIONS");
  const int mutations = more ? std::atoi(more) : kMutations;
  for (int number = 0; number < mutations; ++number) {
    SCOPED_TRACE(number);
    try_mutation(number, &tally);
    ASSERT_EQ(testing::engine_bytes(), before);
  }
  // Most are to be seen through at least in part: valid frames, nearly.
  EXPECT_GT(tally.executed, static_cast<uint64_t>(mutations) * 4);
  std::cout << tally.refused << " refused, " << tally.executed << " instructions, " << tally.failed << " failed\n";
}

}  // namespace
}  // namespace tt::server
