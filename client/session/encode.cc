#include "client/session/encode.h"

#include <algorithm>

#include "engine/schema/error.h"

namespace tt::client {
namespace {

uint64_t id_of(const TensorMeta* tensor) { return tensor ? static_cast<const Handle*>(tensor)->id : 0; }

bool equal(const Arg& a, const Arg& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Arg::Kind::kNone: return true;
    case Arg::Kind::kBool:
    case Arg::Kind::kInt: return a.integer == b.integer && a.size == b.size;
    case Arg::Kind::kFloat: return a.real == b.real;
    case Arg::Kind::kComplex: return false;  // no parameter has a complex default
    case Arg::Kind::kInts: return a.ints() == b.ints();
    case Arg::Kind::kFloats: return a.floats() == b.floats();
    case Arg::Kind::kString: return a.string() == b.string();
    default: return false;  // no parameter has a tensor default
  }
}

void encode_arg(const Arg& arg, v1::Argument* out) {
  switch (arg.kind) {
    case Arg::Kind::kNone: out->set_none(true); return;
    case Arg::Kind::kTensor: out->set_handle(id_of(arg.tensor)); return;
    case Arg::Kind::kTensors: {
      auto* values = out->mutable_handles()->mutable_values();
      values->Reserve(static_cast<int>(arg.size));
      for (const TensorMeta* tensor : arg.list()) values->AddAlreadyReserved(id_of(tensor));
      return;
    }
    case Arg::Kind::kBool: out->set_boolean(arg.to_bool()); return;
    case Arg::Kind::kInt:
      arg.size == 0 ? out->set_integer(arg.integer) : out->set_natural(static_cast<uint64_t>(arg.integer));
      return;
    case Arg::Kind::kFloat: out->set_real(arg.real); return;
    case Arg::Kind::kComplex:
      out->mutable_complex()->set_real(arg.real);
      out->mutable_complex()->set_imaginary(arg.imaginary);
      return;
    case Arg::Kind::kInts: {
      auto* values = out->mutable_integers()->mutable_values();
      values->Add(arg.ints().begin(), arg.ints().end());
      return;
    }
    case Arg::Kind::kFloats: {
      auto* values = out->mutable_reals()->mutable_values();
      values->Add(arg.floats().begin(), arg.floats().end());
      return;
    }
    case Arg::Kind::kString: out->set_characters(arg.characters, arg.size); return;
    case Arg::Kind::kSlot: out->set_handle(arg.slot); return;
    case Arg::Kind::kSlots: out->mutable_handles()->mutable_values()->Add(arg.slots, arg.slots + arg.size); return;
  }
}

}  // namespace

size_t count_given(const Op& op, Args args) {
  size_t count = args.size();
  while (count > 0 && op.params[count - 1].has_default && equal(args[count - 1], op.params[count - 1].default_value)) {
    --count;
  }
  return count;
}

FrameSize encoded_size(const Op& op, Args args, size_t max_inline_bytes) {
  constexpr size_t kInstruction = 26, kScalar = 22, kListEntry = 10;
  size_t characters = 0, numbers = 0;
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kString) [[unlikely]] {
      check(ErrorKind::kValue, arg.size <= max_inline_bytes, "[", op.name, "] expected a string of at most ",
            max_inline_bytes, " bytes, which is the engine's limit, got ", arg.size);
      characters += arg.size;
    } else {
      numbers += arg.size;  // other kinds have size 0 or a few entries
    }
  }
  return {kInstruction + kScalar * args.size() + kListEntry * numbers + characters,
          frame_memory::kInstruction + frame_memory::kArgument * args.size() + frame_memory::kNumber * numbers +
              frame_memory::kCharacter * characters};
}

void encode_args(const Op& op, Args args, v1::Instruction* instruction) {
  size_t count = count_given(op, args);
  for (size_t i = 0; i < count; ++i) encode_arg(args[i], instruction->add_args());
}

void encode_program(const tt::Program& program, v1::Frame* frame) {
  for (const Instruction& instruction : program.instructions()) {
    v1::Instruction* wire = frame->add_instructions();
    wire->set_op(instruction.op->id);
    for (const Arg& arg : instruction.args) encode_arg(arg, wire->add_args());
    const bool into = (instruction.flags & Instruction::kInto) != 0;
    if (into) {
      wire->mutable_into()->Add(instruction.results.begin(), instruction.results.end());
    } else if (!instruction.results.empty()) {
      wire->set_result(instruction.results[0]);
      wire->set_result_count(static_cast<uint32_t>(instruction.results.size()));
    }
    wire->mutable_release()->Add(instruction.release.begin(), instruction.release.end());
    wire->set_no_grad((instruction.flags & Instruction::kGrad) == 0);
    wire->set_inference((instruction.flags & Instruction::kInference) != 0);
    if (const DType t = instruction.default_float(); t != kDefaultFloat)
      wire->set_default_dtype(static_cast<uint32_t>(t));
    if ((instruction.flags & Instruction::kRecompute) != 0)
      wire->set_recompute((instruction.flags & Instruction::kRecomputeOdd) != 0 ? 1 : 2);
    wire->set_site(instruction.site);
  }
  for (const SizeArgument& size : program.sizes()) {
    v1::SizeArgument* wire = frame->add_sizes();
    wire->set_instruction(size.instruction);
    wire->set_arg(size.arg);
    wire->set_element(size.element);
    for (const SizeTerm& term : size.expression) {
      wire->add_terms(static_cast<int64_t>(term.kind));
      wire->add_terms(term.number);
      wire->add_terms(static_cast<int64_t>(term.name));
    }
  }
  uint64_t request = 0;
  for (Slot slot : program.outputs()) {
    v1::Read* read = frame->add_reads();
    read->set_request(++request);
    read->set_handle(slot);
  }
  frame->mutable_release()->Add(program.release().begin(), program.release().end());
}

void decode_description(const v1::TensorDescription& description, TensorMeta* meta) {
  meta->dtype = static_cast<DType>(description.dtype());
  meta->device = decode_device(description.device());
  meta->sizes.assign(description.sizes().begin(), description.sizes().end());
  meta->strides = contiguous_strides(meta->sizes);
  meta->offset = 0;
}

}  // namespace tt::client
