#include "engine/program/chain_code.h"

#include <algorithm>
#include <bit>

#include "engine/dispatch/chain_reduction.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

// Encodes the first word of an argument: its kind, and a length, a flag or an index.
int64_t head(Arg::Kind kind, uint32_t size) { return static_cast<int64_t>(kind) | int64_t{size} << 8; }

size_t words_of_string(size_t characters) { return (characters + sizeof(int64_t) - 1) / sizeof(int64_t); }

// In the word with the number of a step's arguments.
constexpr uint64_t kKept = uint64_t{1} << 32;

class ChainReader {
 public:
  explicit ChainReader(absl::Span<const int64_t> code) : code_(code) {}
  bool done() const { return code_.empty(); }
  int64_t word() { return words(1)[0]; }
  absl::Span<const int64_t> words(size_t count) {
    check(ErrorKind::kValue, count <= code_.size(), "the code of pointwise_chain is truncated");
    auto result = code_.first(count);
    code_.remove_prefix(count);
    return result;
  }

 private:
  absl::Span<const int64_t> code_;
};

static_assert(kMaxChainSteps <= INT8_MAX && kMaxChainInputs <= INT8_MAX);  // of CodedStep::from

int8_t index_below(uint32_t index, size_t count) {
  check(ErrorKind::kValue, index < count, "expected a step of pointwise_chain to refer to an index below ", count,
        ", got ", index);
  return static_cast<int8_t>(index);
}

// Returns the index of the input or result that the argument refers to, or -1 for a value.
int8_t read_arg(ChainReader& reader, size_t inputs, size_t steps, Arg* arg) {
  const auto first = static_cast<uint64_t>(reader.word());
  const auto size = static_cast<uint32_t>(first >> 8);
  check(ErrorKind::kValue, (first & 0xff) <= static_cast<uint64_t>(Arg::Kind::kSlots), "a step of pointwise_chain ",
        "has an argument of unknown kind ", first & 0xff);
  arg->kind = static_cast<Arg::Kind>(first & 0xff);
  switch (arg->kind) {
    case Arg::Kind::kNone: return -1;
    case Arg::Kind::kTensor: return index_below(size, inputs);
    case Arg::Kind::kSlot: return index_below(size, steps);
    case Arg::Kind::kBool:
    case Arg::Kind::kInt:
    case Arg::Kind::kFloat:
      arg->size = arg->kind == Arg::Kind::kInt && size != 0;
      arg->integer = arg->kind == Arg::Kind::kBool ? reader.word() != 0 : reader.word();
      return -1;
    case Arg::Kind::kComplex:
      arg->real = std::bit_cast<double>(reader.word());
      arg->imaginary = std::bit_cast<double>(reader.word());
      return -1;
    case Arg::Kind::kInts:
    case Arg::Kind::kFloats:
      arg->size = size;
      arg->integers = reader.words(size).data();
      return -1;
    case Arg::Kind::kString:
      arg->size = size;
      arg->characters = reinterpret_cast<const char*>(reader.words(words_of_string(size)).data());
      return -1;
    case Arg::Kind::kTensors:
    case Arg::Kind::kSlots: break;
  }
  fail(ErrorKind::kValue,
       "expected a tensor or a value as argument of a step of pointwise_chain, got a list of tensors");
}

}  // namespace

void ChainWriter::begin_step(const Op& op, uint32_t site, uint64_t result, size_t args, bool kept) {
  code_.insert(code_.end(), {int64_t{op.id}, int64_t{site}, static_cast<int64_t>(result),
                             static_cast<int64_t>(args | (kept ? kKept : 0))});
}

void ChainWriter::add_input(size_t index) { code_.push_back(head(Arg::Kind::kTensor, static_cast<uint32_t>(index))); }

void ChainWriter::add_result(size_t index) { code_.push_back(head(Arg::Kind::kSlot, static_cast<uint32_t>(index))); }

void ChainWriter::add_value(const Arg& arg) {
  code_.push_back(head(arg.kind, arg.size));
  switch (arg.kind) {
    case Arg::Kind::kNone: return;
    case Arg::Kind::kInts:
    case Arg::Kind::kFloats: code_.insert(code_.end(), arg.integers, arg.integers + arg.size); return;
    case Arg::Kind::kString: {
      const size_t first = code_.size();
      code_.resize(first + words_of_string(arg.size));
      std::copy(arg.characters, arg.characters + arg.size, reinterpret_cast<char*>(code_.data() + first));
      return;
    }
    case Arg::Kind::kComplex:
      code_.push_back(arg.integer);
      code_.push_back(std::bit_cast<int64_t>(arg.imaginary));
      return;
    default: code_.push_back(arg.integer);
  }
}

bool append_computation(absl::Span<const int64_t> code, std::vector<int64_t>* words) {
  const auto append = [&](size_t count) {
    if (count > code.size()) return false;
    words->insert(words->end(), code.begin(), code.begin() + static_cast<int64_t>(count));
    code.remove_prefix(count);
    return true;
  };
  while (!code.empty()) {
    if (code.size() < 4) return false;
    const auto head = static_cast<uint64_t>(code[3]);
    words->insert(words->end(), {code[0], code[3]});
    code.remove_prefix(4);
    for (uint64_t i = 0; i < (head & ~kKept); ++i) {
      if (code.empty()) return false;
      const auto first = static_cast<uint64_t>(code[0]);
      const auto size = static_cast<uint32_t>(first >> 8);
      size_t more = 0;
      switch (static_cast<Arg::Kind>(first & 0xff)) {
        case Arg::Kind::kNone:
        case Arg::Kind::kTensor:
        case Arg::Kind::kSlot: break;
        case Arg::Kind::kBool:
        case Arg::Kind::kInt:
        case Arg::Kind::kFloat: more = 1; break;
        case Arg::Kind::kComplex: more = 2; break;
        case Arg::Kind::kInts:
        case Arg::Kind::kFloats: more = size; break;
        case Arg::Kind::kString: more = words_of_string(size); break;
        default: return false;
      }
      if (!append(1 + more)) return false;
    }
  }
  return true;
}

CodedSteps read_chain(absl::Span<const int64_t> code, size_t inputs) {
  check(ErrorKind::kValue, inputs <= kMaxChainInputs, "pointwise_chain accepts at most ", kMaxChainInputs,
        " inputs, got ", inputs);
  CodedSteps steps;
  ChainReader reader(code);
  while (!reader.done()) {
    check(ErrorKind::kValue, steps.size() < kMaxChainSteps, "pointwise_chain accepts at most ", kMaxChainSteps,
          " steps, got more");
    const int64_t id = reader.word();
    const Op* op = id >= 0 && id <= UINT16_MAX ? find_op(static_cast<uint16_t>(id)) : nullptr;
    check(ErrorKind::kValue, op != nullptr && (op->is_pointwise || ends_chain(*op)),
          "pointwise_chain accepts only pointwise operators and a reduction, got ",
          op != nullptr ? op->name : "an unknown operator id");
    check(ErrorKind::kValue, steps.empty() || steps.back().op->is_pointwise, "[", op->name,
          "] expected a reduction to be the last step of pointwise_chain");
    const auto site = static_cast<uint32_t>(reader.word());
    const auto result = static_cast<uint64_t>(reader.word());
    const auto head = static_cast<uint64_t>(reader.word());
    const uint64_t args = head & ~kKept;
    check(ErrorKind::kValue, args <= op->params.size(), "[", op->name, "] takes ", op->params.size(),
          " arguments, got ", args);
    CodedStep& step = steps.emplace_back();
    step.op = op;
    step.site = site;
    step.result = result;
    step.kept = (head & kKept) != 0;
    for (uint64_t i = 0; i < args; ++i) {
      step.from.push_back(read_arg(reader, inputs, steps.size() - 1, &step.args.emplace_back()));
    }
    for (size_t i = args; i < op->params.size(); ++i) {
      step.args.push_back(op->params[i].default_value);
      step.from.push_back(-1);
    }
    const bool reads_last = steps.size() > 1 && !step.args.empty() && step.args[0].kind == Arg::Kind::kSlot &&
                            step.from[0] == static_cast<int8_t>(steps.size()) - 2;
    check(ErrorKind::kValue, op->is_pointwise || reads_last, "[", op->name,
          "] expected a reduction in pointwise_chain to read the result of the step before");
  }
  check(ErrorKind::kValue, !steps.empty(), "pointwise_chain requires at least one step");
  return steps;
}

}  // namespace tt
