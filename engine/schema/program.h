// Program: a list of instructions over slots, as a value. An eager frame is an anonymous Program.
//
// Owns everything that its instructions point to: argument lists, strings, names. Can be copied, compared, hashed and
// printed, and its names can be replaced; server/session/decode.h serialises it. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op.h"
#include "engine/schema/size_expression.h"

namespace tt {

using Slot = uint64_t;  // a client's handle, or a number local to a compiled graph; 0: no name

// An argument that refers to a slot.
inline Arg slot_arg(Slot slot) {
  Arg arg;
  arg.kind = Arg::Kind::kSlot;
  arg.slot = slot;
  return arg;
}

// The names that an argument refers to, including 0 for an entry of a list without a tensor.
inline absl::Span<const Slot> names_in(const Arg& arg) {
  if (arg.kind == Arg::Kind::kSlot) return {&arg.slot, 1};
  if (arg.kind == Arg::Kind::kSlots) return {arg.slots, arg.size};
  return {};
}

struct Instruction {
  enum Flags : uint8_t {
    kGrad = 1,       // the caller's grad mode was on
    kInference = 2,  // the caller was in inference mode
    kInto = 4,       // results are written to the existing tensors named by `results`
    // The caller's default dtype (engine/schema/default_float.h); neither: float32.
    kFloat64 = 8,
    kFloat16 = 16,
    kBFloat16 = kFloat64 | kFloat16,
    // The mark of a region of which backward computes the results again instead of keeping them: one bit or the other,
    // in turn.
    kRecomputeOdd = 32,
    kRecomputeEven = 64,
    kRecompute = kRecomputeOdd | kRecomputeEven,
  };
  // The flags of a default dtype, and the reverse.
  static uint8_t flags_of(DType default_float) {
    return default_float == DType::kFloat64    ? kFloat64
           : default_float == DType::kFloat16  ? kFloat16
           : default_float == DType::kBFloat16 ? kBFloat16
                                               : 0;
  }
  DType default_float() const {
    constexpr DType kDefaults[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
    return kDefaults[(flags & kBFloat16) / kFloat64];
  }
  const Op* op = nullptr;
  Args args;                       // tensors as kSlot and kSlots
  absl::Span<const Slot> results;  // new names; with kInto, names of the tensors to write
  absl::Span<const Slot> release;  // names dropped before this instruction runs
  uint8_t flags = kGrad;
  uint16_t count = 1;  // number of the sender's instructions that this one replaces: several if fused
  uint32_t site = 0;   // the client's number for the user's source line
};

// Whether two instructions have the same operator, flags and arguments. Floating-point numbers are compared bitwise.
bool is_same_call(const Instruction& a, const Instruction& b);

// An integer among an instruction's arguments that depends on the sizes of values: with_sizes() (sized_program.h)
// replaces the argument.
struct SizeArgument {
  static constexpr int32_t kNumber = -1;

  uint32_t instruction = 0;
  uint32_t arg = 0;
  int32_t element = kNumber;  // of a list of integers; kNumber if the argument is a number
  SizeExpression expression;
};

// Arena for the data that instructions point to. Addresses stay valid until clear(), which keeps enough memory for an
// ordinary frame.
class ProgramMemory {
 public:
  ProgramMemory() = default;
  ProgramMemory(ProgramMemory&& other) noexcept { *this = std::move(other); }
  ProgramMemory& operator=(ProgramMemory&& other) noexcept {
    chunks_ = std::exchange(other.chunks_, {});
    next_ = std::exchange(other.next_, nullptr);
    left_ = std::exchange(other.left_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  // Returns `count` uninitialised elements.
  template <typename T>
  absl::Span<T> allocate(size_t count) {
    static_assert(alignof(T) <= alignof(uint64_t) && std::is_trivially_destructible_v<T>);
    return {static_cast<T*>(allocate_bytes(count * sizeof(T))), count};
  }
  template <typename T>
  absl::Span<const T> copy(absl::Span<const T> values) {
    if (values.empty()) return {};
    absl::Span<T> copied = allocate<T>(values.size());
    std::uninitialized_copy(values.begin(), values.end(), copied.begin());
    return copied;
  }
  // Includes unused space at the end of chunks.
  uint64_t bytes() const { return bytes_; }
  void clear();

 private:
  void* allocate_bytes(size_t bytes) {
    const size_t words = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    if (words > left_) [[unlikely]]
      grow(words);
    uint64_t* at = next_;
    next_ += words;
    left_ -= words;
    return at;
  }
  void grow(size_t words);

  struct Chunk {
    std::unique_ptr<uint64_t[]> memory;
    size_t words;
  };
  std::vector<Chunk> chunks_;
  uint64_t* next_ = nullptr;
  size_t left_ = 0;  // words
  uint64_t bytes_ = 0;
};

// A read of a name between two instructions of a Program.
struct ReadPoint {
  size_t instruction;  // number of the Program's instructions that run before the read
  Slot slot;
};

class Program {
 public:
  // The largest name in a Program that the engine keeps (engine/session/programs.h).
  static constexpr Slot kMaxNames = Slot{1} << 16;

  Program() = default;
  Program(const Program& other) { *this = other; }
  Program& operator=(const Program& other);
  Program(Program&& other) noexcept { *this = std::move(other); }
  Program& operator=(Program&& other) noexcept {
    instructions_ = std::exchange(other.instructions_, {});
    outputs_ = std::exchange(other.outputs_, {});
    release_ = std::exchange(other.release_, {});
    sizes_ = std::exchange(other.sizes_, {});
    memory_ = std::move(other.memory_);
    return *this;
  }

  const std::vector<Instruction>& instructions() const { return instructions_; }
  // outputs() are the names that the caller reads after the Program has run; release() are the names to drop after
  // that.
  absl::Span<const Slot> outputs() const { return outputs_; }
  absl::Span<const Slot> release() const { return release_; }
  // In ascending order of their instructions. Only of Programs that a client defines; passes require that there are
  // none.
  absl::Span<const SizeArgument> sizes() const { return sizes_; }

  // These functions build a Program. Instructions must point into memory().
  ProgramMemory& memory() { return memory_; }
  void reserve(size_t instructions) { instructions_.reserve(instructions); }
  Instruction& add(const Op& op);
  // Appends an instruction; copies the arguments.
  Instruction& add(const Op& op, Args args, absl::Span<const Slot> results, absl::Span<const Slot> release = {});
  void set_outputs(absl::Span<const Slot> names) { outputs_ = memory_.copy(names); }
  void set_release(absl::Span<const Slot> names) { release_ = memory_.copy(names); }
  // Copies the expression. Call in ascending order of instructions, arguments and elements.
  void add_size(const SizeArgument& size);
  void clear_sizes() { sizes_.clear(); }
  // Copies `args` with their lists and strings into memory().
  Args copy_args(Args args);
  // Called by passes, which replace instructions in place.
  std::vector<Instruction>& mutable_instructions() { return instructions_; }
  void clear();
  // Host memory in use.
  uint64_t bytes() const {
    return memory_.bytes() + instructions_.capacity() * sizeof(Instruction) + sizes_.capacity() * sizeof(SizeArgument);
  }

  // Replaces every name except 0.
  void rename(absl::FunctionRef<Slot(Slot)> name_of);

  // Structural equality; ignores source lines and counts. Floating-point numbers are compared bitwise.
  friend bool operator==(const Program& a, const Program& b);
  template <typename H>
  friend H AbslHashValue(H h, const Program& program) {
    return H::combine(std::move(h), program.fingerprint());
  }
  // A hash that is equal for equal Programs in all processes with the same schema (schema_digest()).
  uint64_t fingerprint() const;

 private:
  std::vector<Instruction> instructions_;
  absl::Span<const Slot> outputs_;
  absl::Span<const Slot> release_;
  std::vector<SizeArgument> sizes_;
  ProgramMemory memory_;
};

// Returns `program` with its names replaced by 1, 2, ... in order of first use, so that two Programs that differ only
// in names are equal.
Program canonical(const Program& program);

// Returns one line per instruction, such as "%3 = add(%1, %2, alpha=1)  # drops %1".
std::string to_string(const Program& program);

// UseDefs contains, for each name of a Program, the indices of the instructions that define, use and drop it. Later
// changes to the Program are not reflected.
class UseDefs {
 public:
  static constexpr int kOutside = -1;  // defined before the Program runs; dropped after it or never

  struct Name {
    int definition = kOutside;
    std::vector<int> uses;  // instructions that read or write it, ascending
    int release = kOutside;
    bool is_output = false;
  };

  explicit UseDefs(const Program& program);
  // Null for a name that does not occur in the Program.
  const Name* find(Slot slot) const;
  // Names that the Program reads but does not define, in order of first use.
  absl::Span<const Slot> inputs() const { return inputs_; }

 private:
  Name& use(Slot slot, int instruction);

  absl::flat_hash_map<Slot, Name> names_;
  std::vector<Slot> inputs_;
};

}  // namespace tt
