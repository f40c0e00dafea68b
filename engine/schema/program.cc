#include "engine/schema/program.h"

#include <algorithm>
#include <bit>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr size_t kFirstChunk = 1 << 11;    // words: 16 KiB
constexpr size_t kMaxChunk = 1 << 17;      // 1 MiB, except for a longer list
constexpr size_t kMaxKeptWords = 1 << 14;  // clear() keeps at most this: 128 KiB
constexpr size_t kMaxKeptInstructions = 1 << 12;

bool is_list(const Arg& arg) {
  return arg.kind == Arg::Kind::kInts || arg.kind == Arg::Kind::kFloats || arg.kind == Arg::Kind::kSlots;
}

// Views a list of 8-byte elements as 64-bit words, so that lists are compared and hashed by their bytes.
absl::Span<const uint64_t> words_of(const Arg& arg) {
  return {reinterpret_cast<const uint64_t*>(arg.integers), arg.size};
}

bool equal(const Arg& a, const Arg& b) {
  if (a.kind != b.kind || a.size != b.size) return false;
  if (is_list(a)) return words_of(a) == words_of(b);
  if (a.kind == Arg::Kind::kString) return a.string() == b.string();
  if (a.kind == Arg::Kind::kNone) return true;
  return a.integer == b.integer && std::bit_cast<uint64_t>(a.imaginary) == std::bit_cast<uint64_t>(b.imaginary);
}

bool equal(const Instruction& a, const Instruction& b) {
  return is_same_call(a, b) && a.results == b.results && a.release == b.release;
}

bool equal(const SizeArgument& a, const SizeArgument& b) {
  return a.instruction == b.instruction && a.arg == b.arg && a.element == b.element && a.expression == b.expression;
}

// FNV-1a over words, with a final mix. Not resistant to hostile keys.
class Fingerprint {
 public:
  void add(uint64_t word) { state_ = (state_ ^ word) * 0x100000001b3; }
  void add(absl::Span<const uint64_t> words) {
    add(words.size());
    for (uint64_t word : words) add(word);
  }
  void add(const Arg& arg) {
    add(static_cast<uint64_t>(arg.kind) | uint64_t{arg.size} << 8);
    if (is_list(arg)) return add(words_of(arg));
    if (arg.kind == Arg::Kind::kString) {
      for (char c : arg.string()) add(static_cast<unsigned char>(c));
    } else if (arg.kind != Arg::Kind::kNone) {
      add(static_cast<uint64_t>(arg.integer));
      add(std::bit_cast<uint64_t>(arg.imaginary));
    }
  }
  uint64_t value() const {
    uint64_t x = state_;
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
    return x ^ (x >> 33);
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

std::string name_text(Slot slot) { return slot == 0 ? "none" : absl::StrCat("%", slot); }

std::string names_text(absl::Span<const Slot> slots) {
  return absl::StrJoin(slots, ", ", [](std::string* out, Slot slot) { out->append(name_text(slot)); });
}

// `sizes` are those of the argument.
std::string arg_text(const Arg& arg, absl::Span<const SizeArgument> sizes) {
  if (!sizes.empty() && sizes[0].element == SizeArgument::kNumber) return to_string(sizes[0].expression);
  switch (arg.kind) {
    case Arg::Kind::kNone: return "None";
    case Arg::Kind::kTensor:
    case Arg::Kind::kTensors: return "<tensor>";
    case Arg::Kind::kBool: return arg.integer != 0 ? "True" : "False";
    case Arg::Kind::kInt:
      return arg.size == 0 ? absl::StrCat(arg.integer) : absl::StrCat(static_cast<uint64_t>(arg.integer));
    case Arg::Kind::kFloat: return absl::StrCat(arg.real);
    case Arg::Kind::kComplex: return absl::StrCat("(", arg.real, " + ", arg.imaginary, "j)");
    case Arg::Kind::kInts: {
      std::vector<std::string> texts;
      for (int64_t number : arg.ints()) texts.push_back(absl::StrCat(number));
      for (const SizeArgument& size : sizes) {
        if (static_cast<size_t>(size.element) < texts.size())
          texts[static_cast<size_t>(size.element)] = to_string(size.expression);
      }
      return absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
    }
    case Arg::Kind::kFloats: return absl::StrCat("[", absl::StrJoin(arg.floats(), ", "), "]");
    case Arg::Kind::kString: return absl::StrCat("'", absl::CHexEscape(message_part(arg.string())), "'");
    case Arg::Kind::kSlot: return name_text(arg.slot);
    case Arg::Kind::kSlots: return absl::StrCat("[", names_text({arg.slots, arg.size}), "]");
  }
  return "?";
}

}  // namespace

bool is_same_call(const Instruction& a, const Instruction& b) {
  return a.op == b.op && a.flags == b.flags &&
         std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(),
                    [](const Arg& x, const Arg& y) { return equal(x, y); });
}

void ProgramMemory::grow(size_t words) {
  const size_t last = chunks_.empty() ? kFirstChunk / 2 : chunks_.back().words;
  const size_t size = std::max(words, std::min(2 * last, kMaxChunk));
  chunks_.push_back({std::make_unique_for_overwrite<uint64_t[]>(size), size});
  next_ = chunks_.back().memory.get();
  left_ = size;
  bytes_ += size * sizeof(uint64_t);
}

void ProgramMemory::clear() {
  if (chunks_.empty()) return;
  // In an ordinary frame the last chunk is the largest: the next Program will probably fit in it.
  Chunk kept = std::move(chunks_.back());
  chunks_.clear();
  bytes_ = 0;
  next_ = nullptr;
  left_ = 0;
  if (kept.words > kMaxKeptWords) return;
  next_ = kept.memory.get();
  left_ = kept.words;
  bytes_ = kept.words * sizeof(uint64_t);
  chunks_.push_back(std::move(kept));
}

Args Program::copy_args(Args args) {
  absl::Span<Arg> copies = memory_.allocate<Arg>(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    Arg* copy = new (&copies[i]) Arg(args[i]);
    if (is_list(*copy)) {
      copy->integers = memory_.copy(copy->ints()).data();
    } else if (copy->kind == Arg::Kind::kString) {
      copy->characters = memory_.copy(absl::Span<const char>(copy->characters, copy->size)).data();
    }
  }
  return copies;
}

Instruction& Program::add(const Op& op) {
  Instruction& instruction = instructions_.emplace_back();
  instruction.op = &op;
  return instruction;
}

Instruction& Program::add(const Op& op, Args args, absl::Span<const Slot> results, absl::Span<const Slot> release) {
  Instruction& instruction = add(op);
  instruction.args = copy_args(args);
  instruction.results = memory_.copy(results);
  instruction.release = memory_.copy(release);
  return instruction;
}

void Program::add_size(const SizeArgument& size) {
  sizes_.push_back(size);
  sizes_.back().expression = memory_.copy(size.expression);
}

Program& Program::operator=(const Program& other) {
  if (this == &other) return *this;
  clear();
  instructions_ = other.instructions_;
  for (Instruction& instruction : instructions_) {
    instruction.args = copy_args(instruction.args);
    instruction.results = memory_.copy(instruction.results);
    instruction.release = memory_.copy(instruction.release);
  }
  set_outputs(other.outputs_);
  set_release(other.release_);
  for (const SizeArgument& size : other.sizes_) add_size(size);
  return *this;
}

void Program::clear() {
  instructions_.clear();
  if (instructions_.capacity() > kMaxKeptInstructions) std::vector<Instruction>().swap(instructions_);
  outputs_ = release_ = {};
  sizes_.clear();
  memory_.clear();
}

void Program::rename(absl::FunctionRef<Slot(Slot)> name_of) {
  auto renamed = [&](absl::Span<const Slot> names) {
    absl::Span<Slot> copy = memory_.allocate<Slot>(names.size());
    for (size_t i = 0; i < names.size(); ++i) copy[i] = names[i] == 0 ? 0 : name_of(names[i]);
    return absl::Span<const Slot>(copy);
  };
  for (Instruction& instruction : instructions_) {
    instruction.release = renamed(instruction.release);
    absl::Span<Arg> args = memory_.allocate<Arg>(instruction.args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      Arg arg = instruction.args[i];
      if (arg.kind == Arg::Kind::kSlot && arg.slot != 0) arg.slot = name_of(arg.slot);
      if (arg.kind == Arg::Kind::kSlots) arg.slots = renamed(names_in(arg)).data();
      new (&args[i]) Arg(arg);
    }
    instruction.args = args;
    instruction.results = renamed(instruction.results);
  }
  outputs_ = renamed(outputs_);
  release_ = renamed(release_);
  for (SizeArgument& size : sizes_) {
    absl::Span<SizeTerm> terms = memory_.allocate<SizeTerm>(size.expression.size());
    std::uninitialized_copy(size.expression.begin(), size.expression.end(), terms.begin());
    for (SizeTerm& term : terms) {
      if (term.describes_value()) term.name = name_of(term.name);
    }
    size.expression = terms;
  }
}

bool operator==(const Program& a, const Program& b) {
  return a.outputs_ == b.outputs_ && a.release_ == b.release_ &&
         std::equal(a.instructions_.begin(), a.instructions_.end(), b.instructions_.begin(), b.instructions_.end(),
                    [](const Instruction& x, const Instruction& y) { return equal(x, y); }) &&
         std::equal(a.sizes_.begin(), a.sizes_.end(), b.sizes_.begin(), b.sizes_.end(),
                    [](const SizeArgument& x, const SizeArgument& y) { return equal(x, y); });
}

uint64_t Program::fingerprint() const {
  Fingerprint sum;
  for (const Instruction& instruction : instructions_) {
    sum.add(uint64_t{instruction.op->id} | uint64_t{instruction.flags} << 16);
    sum.add(instruction.args.size());
    for (const Arg& arg : instruction.args) sum.add(arg);
    sum.add(instruction.results);
    sum.add(instruction.release);
  }
  sum.add(outputs_);
  sum.add(release_);
  for (const SizeArgument& size : sizes_) {
    sum.add(uint64_t{size.instruction} | uint64_t{size.arg} << 32);
    sum.add(static_cast<uint64_t>(size.element));
    for (const SizeTerm& term : size.expression) {
      sum.add(static_cast<uint64_t>(term.kind));
      sum.add(static_cast<uint64_t>(term.number));
      sum.add(term.name);
    }
  }
  return sum.value();
}

Program canonical(const Program& program) {
  absl::flat_hash_map<Slot, Slot> names;
  Program renamed = program;
  renamed.rename([&](Slot slot) { return names.try_emplace(slot, names.size() + 1).first->second; });
  return renamed;
}

std::string to_string(const Program& program) {
  std::string text;
  absl::Span<const SizeArgument> sizes = program.sizes();
  const auto take_sizes = [&](size_t instruction, size_t arg) {
    size_t count = 0;
    while (count < sizes.size() && sizes[count].instruction == instruction && sizes[count].arg == arg) ++count;
    const absl::Span<const SizeArgument> taken = sizes.first(count);
    sizes.remove_prefix(count);
    return taken;
  };
  for (size_t n = 0; n < program.instructions().size(); ++n) {
    const Instruction& instruction = program.instructions()[n];
    const bool into = (instruction.flags & Instruction::kInto) != 0;
    if (!instruction.results.empty()) absl::StrAppend(&text, names_text(instruction.results), into ? " <- " : " = ");
    absl::StrAppend(&text, message_part(instruction.op->name), "(");
    for (size_t i = 0; i < instruction.args.size(); ++i) {
      const Arg& arg = instruction.args[i];
      const bool named = names_in(arg).empty() && i < instruction.op->params.size();
      absl::StrAppend(&text, i == 0 ? "" : ", ", message_part(named ? instruction.op->params[i].name : ""),
                      named ? "=" : "", arg_text(arg, take_sizes(n, i)));
    }
    absl::StrAppend(&text, ")");
    if (!instruction.release.empty()) absl::StrAppend(&text, "  # drops ", names_text(instruction.release));
    absl::StrAppend(&text, "\n");
  }
  if (!program.outputs().empty()) absl::StrAppend(&text, "read ", names_text(program.outputs()), "\n");
  if (!program.release().empty()) absl::StrAppend(&text, "drop ", names_text(program.release()), "\n");
  return text;
}

UseDefs::UseDefs(const Program& program) {
  const auto& instructions = program.instructions();
  for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
    const Instruction& instruction = instructions[i];
    for (Slot slot : instruction.release) names_[slot].release = i;
    for (const Arg& arg : instruction.args) {
      for (Slot slot : names_in(arg)) {
        if (slot != 0) use(slot, i);
      }
    }
    for (Slot slot : instruction.results) {
      if (instruction.flags & Instruction::kInto) {
        use(slot, i);
      } else {
        names_[slot].definition = i;
      }
    }
  }
  for (Slot slot : program.outputs()) use(slot, UseDefs::kOutside).is_output = true;
}

UseDefs::Name& UseDefs::use(Slot slot, int instruction) {
  Name& name = names_[slot];
  if (name.definition == kOutside && name.uses.empty() && !name.is_output) inputs_.push_back(slot);
  if (instruction != kOutside && (name.uses.empty() || name.uses.back() != instruction))
    name.uses.push_back(instruction);
  return name;
}

const UseDefs::Name* UseDefs::find(Slot slot) const {
  auto found = names_.find(slot);
  return found == names_.end() ? nullptr : &found->second;
}

}  // namespace tt
