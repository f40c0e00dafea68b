// StepCode: machine code of several steps of a loop (iteration/loop.h), which keeps their results in vector registers.
//
// It gives the bits of the steps' block functions; NaNs may have other payloads. The code depends on the operators and
// on what reads what, and not on numbers, sizes or addresses, so that few pieces of code serve most loops. A piece is
// compiled within 0.1 ms, when it is wanted for the third time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "kernels/cpu/compiled/body_table.h"

namespace tt::cpu {

struct StepOperand {
  enum class Kind : uint8_t { kInput, kNumber, kResult };  // of an earlier step
  Kind kind = Kind::kInput;
  uint8_t index = 0;
};

struct SourceStep {
  const Body* body = nullptr;
  std::array<StepOperand, kMaxBodyTensors> args{};
  uint8_t first_number = 0;  // where the body's numbers and constants are
  bool is_stored = false;    // to the next output
};

inline constexpr int kMaxCodeOperands = 176;  // inputs and steps of a piece of code, in total

struct StepSource {
  bool is_double = false;
  uint8_t num_inputs = 0, num_numbers = 0;
  absl::InlinedVector<SourceStep, 8> steps;

  std::string key() const;
};

class StepCode {
 public:
  virtual ~StepCode() = default;
  // Computes elements [0, n) of each output, of any n. in[i], out[i] and numbers have the source's type; the inputs'
  // elements are contiguous. An output may be an input only if it is the last one. Thread-safe.
  void run(int64_t n, const void* const* in, void* const* out, const void* numbers) const;
  virtual size_t bytes() const = 0;  // of machine code

 protected:
  using Function = void (*)(int64_t n, const void* const* in, void* const* out, const void* numbers);

  // `function` requires that n is a multiple of kLanes.
  StepCode(const StepSource& source, Function function);
  static constexpr int64_t kLanes = 16;

 private:
  template <typename C>
  void run_rest(int64_t from, int64_t n, const void* const* in, void* const* out, const void* numbers) const;

  Function function_;
  bool is_double_;
  int num_inputs_, num_outputs_;
};

// Whether code is made for the instruction set: not on other machines, nor with TELETENSOR_COMPILE=0 in the
// environment.
bool compiles_for(const char* isa);

// Compiles for an instruction set, "avx2" or "avx512" (BlockTable::isa). Returns null if there are too few registers,
// or if the machine or this build cannot make such code.
std::unique_ptr<StepCode> compile_steps(const StepSource& source, const char* isa);

// The code of `source` for an instruction set, always the same one, shared by all loops of the process. Null if there
// is none yet; *never is set to whether there will not be any. With `at_once`, the first call compiles. Requires
// compiles_for(isa). Thread-safe.
//
// Keeps at most kMaxCodes pieces and kMaxCodeBytes, and forgets all when it is full: this memory belongs to no session.
std::shared_ptr<const StepCode> find_code(const StepSource& source, const char* isa, bool at_once, bool* never);
inline constexpr size_t kMaxCodes = 1024;
inline constexpr size_t kMaxCodeBytes = size_t{8} << 20;

}  // namespace tt::cpu
