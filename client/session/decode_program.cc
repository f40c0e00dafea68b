#include "client/session/decode_program.h"

#include <complex>
#include <new>
#include <string_view>

#include "engine/schema/error.h"

namespace tt::client {
namespace {

// Returns a repeated field as an array of T.
template <typename T, typename Field>
absl::Span<const T> span_of(const Field& field) {
  static_assert(sizeof(*field.data()) == sizeof(T));
  return {reinterpret_cast<const T*>(field.data()), static_cast<size_t>(field.size())};
}

Arg decode_arg(const v1::Argument& wire, ProgramMemory& memory) {
  switch (wire.value_case()) {
    case v1::Argument::VALUE_NOT_SET:
    case v1::Argument::kNone: return Arg();
    case v1::Argument::kHandle: return slot_arg(wire.handle());
    case v1::Argument::kHandles: {
      const auto handles = memory.copy(span_of<Slot>(wire.handles().values()));
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
    case v1::Argument::kIntegers: return Arg(memory.copy(span_of<int64_t>(wire.integers().values())));
    case v1::Argument::kReals: return Arg(memory.copy(span_of<double>(wire.reals().values())));
    case v1::Argument::kCharacters: break;
  }
  const auto copied = memory.copy(absl::Span<const char>(wire.characters()));
  return Arg(std::string_view(copied.data(), copied.size()));
}

// The names of an instruction's results.
absl::Span<const Slot> names_of(const v1::Instruction& wire, ProgramMemory& memory) {
  if (wire.result() == 0) return memory.copy(span_of<Slot>(wire.into()));
  const size_t count = wire.result_count() == 0 ? 1 : wire.result_count();
  check(ErrorKind::kValue, count <= tt::Program::kMaxNames && wire.result() <= tt::Program::kMaxNames,
        "[restore_program] expected at most ", tt::Program::kMaxNames, " names");
  const absl::Span<Slot> names = memory.allocate<Slot>(count);
  for (size_t i = 0; i < count; ++i) names[i] = wire.result() + i;
  return names;
}

}  // namespace

tt::Program decode_program(const v1::Frame& frame) {
  check(ErrorKind::kValue, frame.sizes().empty(), "[restore_program] expected constant sizes");
  tt::Program program;
  program.reserve(static_cast<size_t>(frame.instructions_size()));
  ProgramMemory& memory = program.memory();
  for (const v1::Instruction& wire : frame.instructions()) {
    const Op* op = wire.op() <= UINT16_MAX ? find_op(static_cast<uint16_t>(wire.op())) : nullptr;
    check(ErrorKind::kNotImplemented, op != nullptr, "[restore_program] operator ", wire.op(), " is unknown");
    const size_t given = static_cast<size_t>(wire.args_size());
    const bool into = wire.into_size() != 0;
    const uint32_t dtype = wire.default_dtype(), mark = wire.recompute();
    check(ErrorKind::kValue,
          given <= op->params.size() && (!into || wire.result() == 0) && mark <= 2 &&
              (dtype == 0 || (is_valid(dtype) && is_default_float(static_cast<DType>(dtype)))),
          "[restore_program] expected an instruction of ", op->name, ", got an invalid one");
    const absl::Span<Arg> args = memory.allocate<Arg>(given);
    for (size_t i = 0; i < given; ++i) new (&args[i]) Arg(decode_arg(wire.args(static_cast<int>(i)), memory));
    Instruction& instruction = program.add(*op);
    instruction.args = args;
    instruction.results = names_of(wire, memory);
    instruction.release = memory.copy(span_of<Slot>(wire.release()));
    instruction.flags = static_cast<uint8_t>(
        (wire.no_grad() ? 0 : Instruction::kGrad) | (wire.inference() ? Instruction::kInference : 0) |
        (into ? Instruction::kInto : 0) | (dtype == 0 ? 0 : Instruction::flags_of(static_cast<DType>(dtype))) |
        (mark == 0   ? 0
         : mark == 1 ? Instruction::kRecomputeOdd
                     : Instruction::kRecomputeEven));
    instruction.site = wire.site();
  }
  const absl::Span<Slot> outputs = memory.allocate<Slot>(static_cast<size_t>(frame.reads_size()));
  for (int i = 0; i < frame.reads_size(); ++i) outputs[static_cast<size_t>(i)] = frame.reads(i).handle();
  program.set_outputs(outputs);
  program.set_release(memory.copy(span_of<Slot>(frame.release())));
  return program;
}

}  // namespace tt::client
