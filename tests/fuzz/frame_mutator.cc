#include "tests/fuzz/frame_mutator.h"

#include <iterator>
#include <string>

#include "tests/server/frames.h"

namespace tt::fuzz {
namespace {

using server::testing::Instruction;

template <typename T>
T* any_of(google::protobuf::RepeatedPtrField<T>* field, Random& random) {
  return field->empty() ? nullptr : field->Mutable(static_cast<int>(random() % static_cast<size_t>(field->size())));
}

int64_t odd_number(Random& random) {
  static constexpr int64_t kOdd[] = {0,   1,     -1,        2,         3,         4,         64,       255,
                                     256, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1ll << 40};
  return kOdd[random() % std::size(kOdd)];
}

void add_argument(Instruction& instruction, const Param& param, Random& random) {
  const auto small = static_cast<int64_t>(random() % 4);
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

// Returns the next unused handle.
uint64_t add_random_instruction(v1::Frame* frame, uint64_t name, Random& random) {
  auto ops = all_ops();
  const Op& op = *ops[random() % ops.size()];
  Instruction instruction(frame, op.id);
  for (const Param& param : op.params) add_argument(instruction, param, random);
  const int count = op.num_outputs < 0 ? 2 : op.num_outputs;
  if (count > 0) instruction.result(name, static_cast<uint32_t>(count));
  return name + static_cast<uint64_t>(count);
}

void mutate_argument(v1::Argument* arg, Random& random) {
  switch (random() % 10) {
    case 0: arg->Clear(); break;
    case 1: arg->set_none(true); break;
    case 2: arg->set_handle(static_cast<uint64_t>(odd_number(random))); break;
    case 3: arg->set_integer(odd_number(random)); break;
    case 4: arg->set_real(static_cast<double>(odd_number(random)) * 1e300); break;
    case 5: arg->set_characters(std::string(random() % 100, 'y')); break;
    case 6: arg->mutable_integers()->add_values(odd_number(random)); break;
    case 7: arg->mutable_handles()->add_values(random() % 5); break;
    case 8: arg->mutable_reals()->add_values(0.1); break;
    case 9:
      if (arg->integers().values().empty()) return;
      arg->mutable_integers()->set_values(
          static_cast<int>(random() % static_cast<size_t>(arg->integers().values_size())), odd_number(random));
      break;
  }
}

void mutate_instruction(v1::Instruction* instruction, Random& random) {
  switch (random() % 9) {
    case 0: instruction->set_op(static_cast<uint32_t>(random() % 1200)); break;
    case 1: instruction->set_result(static_cast<uint64_t>(odd_number(random))); break;
    case 2: instruction->set_result_count(static_cast<uint32_t>(odd_number(random))); break;
    case 3: instruction->add_into(random() % 5); break;
    case 4: instruction->add_release(random() % 5); break;
    case 5: instruction->add_args(); break;
    case 6: instruction->set_default_dtype(6 + static_cast<uint32_t>(random() % 5)); break;  // the last one is invalid
    default:
      if (v1::Argument* arg = any_of(instruction->mutable_args(), random)) mutate_argument(arg, random);
  }
}

// An expression of a few terms that are more likely valid than not, for an argument of an existing instruction.
void add_random_size(v1::Frame* frame, Random& random) {
  if (frame->instructions().empty()) return;
  v1::SizeArgument* size = frame->add_sizes();
  const auto count = static_cast<uint64_t>(frame->instructions_size());
  size->set_instruction(static_cast<uint32_t>(random() % (count + random() % 2)));
  size->set_arg(static_cast<uint32_t>(random() % 4));
  size->set_element(static_cast<int32_t>(random() % 4) - 1);
  const auto add_term = [&](int64_t kind, int64_t number) {
    size->add_terms(kind);
    size->add_terms(number);
    size->add_terms(static_cast<int64_t>(random() % 16));
  };
  add_term(1, static_cast<int64_t>(random() % 3));
  for (uint64_t i = 0, terms = random() % 3; i < terms; ++i) {
    add_term(static_cast<int64_t>(random() % 2), odd_number(random));
    add_term(2 + static_cast<int64_t>(random() % 8), 0);
  }
  std::sort(frame->mutable_sizes()->begin(), frame->mutable_sizes()->end(),
            [](const v1::SizeArgument& a, const v1::SizeArgument& b) { return a.instruction() < b.instruction(); });
}

void mutate_bytes(v1::Frame* frame, Random& random) {
  std::string bytes = frame->SerializeAsString();
  if (bytes.empty()) return;
  for (uint64_t i = 0, count = 1 + random() % 4; i < count; ++i)
    bytes[random() % bytes.size()] = static_cast<char>(random());
  if (random() % 8 == 0) bytes.resize(random() % bytes.size());
  v1::Frame changed;
  if (changed.ParseFromString(bytes)) frame->Swap(&changed);
}

}  // namespace

v1::Frame first_frame() {
  v1::Frame frame;
  server::testing::literal(&frame, 1, {2, 3}, {1, 2, 3, 4, 5, 6});
  server::testing::literal(&frame, 2, {3}, {1, 2, 3});
  server::testing::add(&frame, 3, 1, 2);
  frame.set_sequence(1);
  return frame;
}

v1::Frame random_frame(Random& random) {
  v1::Frame frame;
  uint64_t name = 10;
  for (int i = 0; i < 6; ++i) name = add_random_instruction(&frame, name, random);
  server::testing::read(&frame, 1, 3);
  frame.add_release(2);
  frame.set_sequence(2);
  return frame;
}

void mutate_fields(v1::Frame* frame, Random& random) {
  for (uint64_t i = 0, count = 1 + random() % 3; i < count; ++i) {
    switch (random() % 16) {
      case 0: add_random_instruction(frame, 1000 + random() % 1000, random); break;
      case 1:
        if (!frame->instructions().empty()) frame->mutable_instructions()->RemoveLast();
        break;
      case 2: server::testing::read(frame, random() % 4, random() % 16); break;
      case 3: frame->add_release(random() % 16); break;
      case 4:
        frame->add_scalar_reads(random() % 8);  // more likely valid if it is the only one
        frame->add_scalar_reads(1 + random() % 16);
        break;
      default:
        if (v1::Instruction* one = any_of(frame->mutable_instructions(), random)) mutate_instruction(one, random);
    }
  }
}

void mutate(v1::Frame* frame, Random& random) {
  if (random() % 4 == 0) return mutate_bytes(frame, random);
  mutate_fields(frame, random);
}

size_t mutate_serialized(uint8_t* data, size_t size, size_t max_size, unsigned seed,
                         size_t (*mutate_bytes)(uint8_t*, size_t, size_t)) {
  Random random(seed);
  v1::Frame frame;
  if (random() % 4 == 0 || !frame.ParseFromArray(data, static_cast<int>(size)))
    return mutate_bytes(data, size, max_size);
  if (random() % 12 == 0) {
    add_random_size(&frame, random);
  } else {
    mutate_fields(&frame, random);
  }
  const size_t bytes = frame.ByteSizeLong();
  if (bytes > max_size) return mutate_bytes(data, size, max_size);
  frame.SerializeToArray(data, static_cast<int>(bytes));
  return bytes;
}

}  // namespace tt::fuzz
