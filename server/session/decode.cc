#include "server/session/decode.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"

namespace tt::server {
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

// The repeated fields are arrays of exactly our types: spans borrow them as they are.
template <typename T, typename Field>
absl::Span<const T> span_of(const Field& field) {
  static_assert(sizeof(*field.data()) == sizeof(T));
  return {reinterpret_cast<const T*>(field.data()), static_cast<size_t>(field.size())};
}

// What the frame drops at its end, if it reads none of it before: passes need not make it then.
absl::Span<const Slot> unread_releases(const v1::Frame& frame) {
  constexpr int kFewReads = 8;
  if (frame.reads_size() > kFewReads) return {};
  const auto released = span_of<Slot>(frame.release());
  for (const v1::Read& read : frame.reads()) {
    if (std::find(released.begin(), released.end(), read.handle()) != released.end()) return {};
  }
  return released;
}

// Empty, with room for `count`; without the memory of a much larger frame.
template <typename T>
void reset(std::vector<T>& list, size_t count) {
  constexpr size_t kMaxKept = 1 << 13;
  list.clear();
  if (list.capacity() > std::max(kMaxKept, 4 * count)) std::vector<T>().swap(list);
  list.reserve(count);
}

Arg slots_arg(absl::Span<const Slot> slots) {
  Arg arg;
  arg.kind = Arg::Kind::kSlots;
  arg.size = static_cast<uint32_t>(slots.size());
  arg.slots = slots.data();
  return arg;
}

Arg slot_arg(Slot slot) {
  Arg arg;
  arg.kind = Arg::Kind::kSlot;
  arg.slot = slot;
  return arg;
}

}  // namespace

const Program& Decoder::decode(const v1::Frame& frame) {
  size_t at = 0;
  try {
    reserve(frame);
    for (const v1::Instruction& wire : frame.instructions()) {
      decode_instruction(wire, &program_.instructions[at]);
      ++at;
    }
  } catch (const Error& error) {
    throw ProgramFault{at, error};
  }
  program_.release = unread_releases(frame);
  return program_;
}

// Makes room for the whole frame at once: spans into args_ and names_ must stay where they are.
void Decoder::reserve(const v1::Frame& frame) {
  auto instructions = static_cast<size_t>(frame.instructions_size());
  check_as(ErrorKind::kValue, instructions <= limits_.max_instructions, "a frame has at most ",
           limits_.max_instructions, " instructions, got ", instructions);
  check_as(ErrorKind::kValue, static_cast<size_t>(frame.reads_size()) <= limits_.max_reads, "a frame has at most ",
           limits_.max_reads, " reads, got ", frame.reads_size());
  size_t args = 0, names = 0;
  for (const v1::Instruction& wire : frame.instructions()) {
    const Op& op = known_op(wire.op());
    size_t results = count_results(wire);
    require(results <= limits_.max_results, op, "an instruction has at most ", limits_.max_results, " results, got ",
            results);
    auto given = static_cast<size_t>(wire.args_size());
    require(given <= op.params.size(), op, "takes ", op.params.size(), " arguments, got ", given);
    args += given;
    names += results;
  }
  check_as(ErrorKind::kValue, names <= limits_.max_names, "a frame names at most ", limits_.max_names, " results, got ",
           names);
  reset(args_, args);
  reset(names_, names);
  reset(program_.instructions, instructions);
  program_.instructions.resize(instructions);
}

void Decoder::decode_instruction(const v1::Instruction& wire, Instruction* instruction) {
  const Op& op = known_op(wire.op());
  size_t first_arg = args_.size();
  for (const v1::Argument& arg : wire.args()) args_.push_back(decode_arg(arg, op));
  bool into = wire.into_size() != 0;
  instruction->op = &op;
  instruction->args = Args(args_.data() + first_arg, args_.size() - first_arg);
  instruction->results = into ? span_of<Slot>(wire.into()) : name_results(wire, op);
  require(!into || wire.result() == 0, op, "results land in existing tensors or get new names, not both");
  instruction->release = span_of<Slot>(wire.release());
  instruction->flags =
      static_cast<uint8_t>((wire.no_grad() ? 0 : Instruction::kGrad) |
                           (wire.inference() ? Instruction::kInference : 0) | (into ? Instruction::kInto : 0));
  instruction->site = wire.site();
}

Arg Decoder::decode_arg(const v1::Argument& wire, const Op& op) const {
  switch (wire.value_case()) {
    case v1::Argument::VALUE_NOT_SET:
    case v1::Argument::kNone: return Arg();
    case v1::Argument::kHandle: return slot_arg(wire.handle());
    case v1::Argument::kHandles: return slots_arg(span_of<Slot>(wire.handles().values()));
    case v1::Argument::kBoolean: return Arg(wire.boolean());
    case v1::Argument::kInteger: return Arg(static_cast<int64_t>(wire.integer()));
    case v1::Argument::kReal: return Arg(wire.real());
    case v1::Argument::kComplex: return Arg(std::complex<double>(wire.complex().real(), wire.complex().imaginary()));
    case v1::Argument::kNatural: return Arg(Scalar::of_unsigned(wire.natural()));
    case v1::Argument::kIntegers: return Arg(span_of<int64_t>(wire.integers().values()));
    case v1::Argument::kReals: return Arg(span_of<double>(wire.reals().values()));
    case v1::Argument::kCharacters: break;
  }
  std::string_view bytes = wire.characters();
  require(bytes.size() <= limits_.max_inline_bytes, op, "at most ", limits_.max_inline_bytes, " bytes go inline, got ",
          bytes.size());
  return Arg(bytes);
}

absl::Span<const Slot> Decoder::name_results(const v1::Instruction& wire, const Op& op) {
  size_t count = count_results(wire);
  require(wire.result() <= UINT64_MAX - count, op, "result names run over the end, got ", wire.result());
  size_t first = names_.size();
  for (size_t i = 0; i < count; ++i) names_.push_back(wire.result() + i);
  return {names_.data() + first, count};
}

}  // namespace tt::server
