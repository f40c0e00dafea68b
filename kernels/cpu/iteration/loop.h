// Loop<C>: a chain of block functions run over a space, a block at a time.
//
// A single operator is a chain of one step, a copy a chain of none. Operands that lie one after
// the other in C's dtype are read and written in place; others go through blocks in the L1 cache.
// Lives on its caller's stack; run() uses the process's threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "kernels/cpu/iteration/block.h"
#include "kernels/cpu/iteration/space.h"

namespace tt::cpu {

// Whether a result of so many bytes had better be written past the caches: it would fill the last
// one.
bool streams(int64_t bytes);

inline constexpr int kMaxRegisters = 26;  // a loop's inputs and steps together
inline constexpr int kMaxBuffers = 18;    // blocks alive at once: all of a longest chain's (engine/dispatch/chain.h)

// One block function's place in a chain. Registers are the loop's inputs in order, then the
// results of its steps.
template <typename C>
struct Step {
  BlockFunction<C> function = nullptr;
  std::array<uint8_t, kMaxStepInputs> args{};
  int8_t num_args = 0;
  int8_t divisor = -1;  // the argument that must hold no zero
  bool costly = false;  // PointwiseRow
  Numbers<C> numbers;
};

// An input: an operand, or (data null) a number.
template <typename C>
struct LoopInput {
  const Access* access = nullptr;
  C number{};
};

template <typename C>
class Loop {
 public:
  // The last step's result (or, without steps, the one input) goes to `output`. `space` is
  // collapsed and outlives the loop, as do inputs' accesses and steps. `past_cache`: the output is
  // large and is not read here. Requires at most kMaxRegisters inputs and steps.
  Loop(const Space& space, absl::Span<const LoopInput<C>> inputs, absl::Span<const Step<C>> steps, const Access& output,
       bool past_cache);
  // Whether all that is alive at once fits; run() requires it.
  bool fits() const { return num_buffers_ <= kMaxBuffers; }
  // Throws Error (RuntimeError) where integers are divided by zero; the output is undefined then.
  void run();

 private:
  // How an input's elements get to a block function: where they are; from a block filled once with
  // one number, or with the inner dimension over and over; from a block filled each time.
  enum class Mode : uint8_t { kDirect, kConstant, kPeriodic, kGather };
  struct Register {
    Mode mode = Mode::kGather;  // inputs only
    bool flat = false;          // its elements lie one after the other
    int8_t buffer = -1;
    int16_t last_use = -1;
    C number{};
    const Access* access = nullptr;
    LoadFunction<C> load = nullptr;
  };

  Register plan_input(const LoopInput<C>& input) const;
  void plan_buffers();
  int8_t take_buffer();
  // Elements [begin, end) on this thread.
  void run_range(int64_t begin, int64_t end);
  void run_block(int64_t at, int64_t n, const C** values, C (*buffers)[kBlock]);
  void fill_once(int64_t n, C (*buffers)[kBlock]) const;
  int64_t block_at(int64_t at, int64_t end) const;
  int64_t inner() const { return space_.sizes.empty() ? 1 : space_.sizes.back(); }
  const C* gather(const Register& from, int64_t at, int64_t n, C* buffer) const;
  void scatter(const C* from, int64_t at, int64_t n) const;
  // Calls f(offset, done, rows) for elements [at, at + n) of an operand, `done` of which are done.
  template <typename F>
  void each_rows(const Strides& strides, int64_t at, int64_t n, F f) const;

  const Space& space_;
  absl::Span<const Step<C>> steps_;
  const Access& output_;
  const Moves<C>& moves_;
  int num_inputs_;
  absl::InlinedVector<Register, 6> registers_;
  uint32_t free_buffers_ = ~uint32_t{0};
  int num_buffers_ = 0;
  int64_t block_ = kBlock;  // elements at most
  bool flat_output_;
  bool direct_output_;
  bool past_cache_;
  std::atomic<bool> divided_by_zero_{false};
};

}  // namespace tt::cpu
