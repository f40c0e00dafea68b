#include "formats/program_frame.h"

#include <complex>
#include <new>
#include <string>
#include <string_view>

#include "engine/schema/error.h"

namespace tt {
namespace {

template <typename... Parts>
void require(bool ok, const Op& op, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(ErrorKind::kValue, "[", op.name, "] ", parts...);
}

const Op& known_op(uint32_t id) {
  const Op* op = id <= UINT16_MAX ? find_op(static_cast<uint16_t>(id)) : nullptr;
  if (op == nullptr) [[unlikely]] {
    fail(ErrorKind::kNotImplemented, "operator ", id, " is unknown to this engine");
  }
  return *op;
}

size_t count_results(const v1::Instruction& wire) {
  if (wire.result() == 0) return 0;
  return wire.result_count() == 0 ? 1 : wire.result_count();
}

// Returns a repeated field as an array of T.
template <typename T, typename Field>
absl::Span<const T> span_of(const Field& field) {
  static_assert(sizeof(*field.data()) == sizeof(T));
  return {reinterpret_cast<const T*>(field.data()), static_cast<size_t>(field.size())};
}

class Decoder {
 public:
  Decoder(const FrameLimits& limits, Program& program)
      : limits_(limits), program_(program), memory_(program.memory()) {}

  void decode_instruction(const v1::Instruction& wire) {
    const Op& op = known_op(wire.op());
    const auto given = static_cast<size_t>(wire.args_size());
    require(given <= op.params.size(), op, "expected at most ", op.params.size(), " arguments, got ", given);
    absl::Span<Arg> args = memory_.allocate<Arg>(given);
    for (size_t i = 0; i < given; ++i) new (&args[i]) Arg(decode_arg(wire.args(static_cast<int>(i)), op));
    const bool into = wire.into_size() != 0;
    require(!into || wire.result() == 0, op, "expected either `into` or new result names, got both");
    Instruction& instruction = program_.add(op);
    instruction.args = args;
    instruction.results = into ? memory_.copy(span_of<Slot>(wire.into())) : name_results(wire, op);
    instruction.release = memory_.copy(span_of<Slot>(wire.release()));
    instruction.flags =
        static_cast<uint8_t>((wire.no_grad() ? 0 : Instruction::kGrad) |
                             (wire.inference() ? Instruction::kInference : 0) | (into ? Instruction::kInto : 0));
    if (wire.default_dtype() != 0) [[unlikely]]
      instruction.flags |= Instruction::flags_of(decode_default(wire.default_dtype(), op));
    if (const uint32_t mark = wire.recompute() & 3; mark != 0) [[unlikely]]
      instruction.flags |= mark % 2 == 1 ? Instruction::kRecomputeOdd : Instruction::kRecomputeEven;
    instruction.site = wire.site();
  }

 private:
  static DType decode_default(uint32_t number, const Op& op) {
    require(is_valid(number) && is_default_float(static_cast<DType>(number)), op,
            "expected the default dtype to be a floating dtype of at least 16 bits, got number ", number);
    return static_cast<DType>(number);
  }

  template <typename T, typename Field>
  absl::Span<const T> copy(const Field& field) {
    return memory_.copy(span_of<T>(field));
  }

  Arg decode_arg(const v1::Argument& wire, const Op& op) {
    switch (wire.value_case()) {
      case v1::Argument::VALUE_NOT_SET:
      case v1::Argument::kNone: return Arg();
      case v1::Argument::kHandle: return slot_arg(wire.handle());
      case v1::Argument::kHandles: {
        const auto handles = copy<Slot>(wire.handles().values());
        Arg arg;
        arg.kind = Arg::Kind::kSlots;
        arg.size = static_cast<uint32_t>(handles.size());
        arg.slots = handles.data();
        return arg;
      }
      case v1::Argument::kBoolean: return Arg(wire.boolean());
      case v1::Argument::kInteger: return Arg(static_cast<int64_t>(wire.integer()));
      case v1::Argument::kReal: return Arg(wire.real());
      case v1::Argument::kComplex: return Arg(std::complex<double>(wire.complex().real(), wire.complex().imaginary()));
      case v1::Argument::kNatural: return Arg(Scalar::of_unsigned(wire.natural()));
      case v1::Argument::kIntegers: return Arg(copy<int64_t>(wire.integers().values()));
      case v1::Argument::kReals: return Arg(copy<double>(wire.reals().values()));
      case v1::Argument::kCharacters: break;
    }
    const std::string& bytes = wire.characters();
    require(bytes.size() <= limits_.inline_bytes, op, "expected at most ", limits_.inline_bytes, " inline bytes, got ",
            bytes.size());
    const auto copied = memory_.copy(absl::Span<const char>(bytes));
    return Arg(std::string_view(copied.data(), copied.size()));
  }

  absl::Span<const Slot> name_results(const v1::Instruction& wire, const Op& op) {
    const size_t count = count_results(wire);
    require(count <= limits_.results, op, "expected at most ", limits_.results, " results, got ", count);
    names_ += count;
    check(ErrorKind::kValue, names_ <= limits_.names, "expected at most ", limits_.names,
          " result names in a frame, got more");
    require(wire.result() <= UINT64_MAX - count, op, "result names exceed 64 bits, first name ", wire.result());
    absl::Span<Slot> names = memory_.allocate<Slot>(count);
    for (size_t i = 0; i < count; ++i) names[i] = wire.result() + i;
    return names;
  }

  const FrameLimits& limits_;
  Program& program_;
  ProgramMemory& memory_;
  size_t names_ = 0;  // result names so far
};

}  // namespace

void decode_program_frame(const v1::Frame& frame, const FrameLimits& limits, Program* program) {
  const auto instructions = static_cast<size_t>(frame.instructions_size());
  check(ErrorKind::kValue, instructions <= limits.instructions, "a frame must have at most ", limits.instructions,
        " instructions, got ", instructions);
  check(ErrorKind::kValue, static_cast<size_t>(frame.reads_size()) <= limits.reads, "a frame must have at most ",
        limits.reads, " reads, got ", frame.reads_size());
  program->reserve(instructions);
  Decoder decoder(limits, *program);
  for (const v1::Instruction& wire : frame.instructions()) decoder.decode_instruction(wire);
  const absl::Span<Slot> outputs = program->memory().allocate<Slot>(static_cast<size_t>(frame.reads_size()));
  for (int i = 0; i < frame.reads_size(); ++i) outputs[static_cast<size_t>(i)] = frame.reads(i).handle();
  program->set_outputs(outputs);
  program->set_release(span_of<Slot>(frame.release()));
}

}  // namespace tt
