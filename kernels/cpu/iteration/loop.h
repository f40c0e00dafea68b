// Loop<C>: runs a chain of block functions over an index space, one block at a time.
//
// A single operator is a chain of one step; a copy is a chain without steps. Contiguous operands of C's dtype are read
// and written in place. All other operands are converted in blocks in the L1 cache. Consecutive steps of a few
// instructions run as compiled code (compiled/step_code.h), if there is any. A loop is created on its caller's stack;
// run() uses the thread pool.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "kernels/cpu/compiled/step_code.h"
#include "kernels/cpu/iteration/block.h"
#include "kernels/cpu/iteration/space.h"

namespace tt::cpu {

// Whether a result of this size should be written with stores that bypass the caches, because it would fill the
// last-level cache.
bool bypasses_cache(int64_t bytes);

// Inputs and steps of a loop, in total. The longest chain has less (engine/dispatch/chain.h): a power is up to two
// steps.
inline constexpr int kMaxRegisters = kMaxCodeOperands;
static_assert(kMaxStepInputs == kMaxBodyTensors);
inline constexpr int kMaxBuffers = 18;  // blocks in use at once

// One block function of a chain. Registers are numbered: first the loop's inputs in order, then the results of its
// steps.
template <typename C>
struct Step {
  BlockFunction<C> function = nullptr;
  const Body* body = nullptr;  // null: not compiled
  std::array<uint8_t, kMaxStepInputs> args{};
  int8_t num_args = 0;
  int8_t divisor = -1;  // index of the argument that must not contain 0; -1: none
  bool costly = false;  // see PointwiseRow
  ScalarArgs<C> scalar_args;
  // If not null, the step's result is stored here: as many elements as the loop's space has, without gaps.
  C* kept = nullptr;
};

// An input: an operand or, if `access` is null, a number.
template <typename C>
struct LoopInput {
  const Access* access = nullptr;
  C number{};
};

template <typename C>
class Loop {
 public:
  // Writes the last step's result (or, without steps, the single input) to `output`. `space` must be collapsed.
  // `space`, `steps`, `output` and the inputs' accesses must outlive the loop. With `past_cache`, results are stored
  // past the caches; requires that the loop does not read the output. Requires at most kMaxRegisters inputs and steps.
  // `often`: the loop will run often, so that its steps are compiled at once, whatever their size.
  Loop(const Space& space, absl::Span<const LoopInput<C>> inputs, absl::Span<const Step<C>> steps, const Access& output,
       bool past_cache, bool often = false);
  // Whether all blocks in use at once fit into kMaxBuffers; run() and compute() require it.
  bool fits() const { return num_buffers_ <= kMaxBuffers; }
  // Whether run() may be called again after the addresses of accesses and of kept results have changed: it may not if
  // the loop has read an operand of one element.
  bool can_repeat() const;
  // Throws Error (RuntimeError) on an integer division by zero; the output is undefined then.
  void run();
  // Computes elements [begin, end) on the calling thread and writes them to `to` instead of the output, of which only
  // the layout counts: it must be contiguous, have C's dtype and not be stored past the caches. Thread-safe.
  void compute(int64_t begin, int64_t end, C* to) { run_range(begin, end, to); }

 private:
  // How a block function reads an input: in place (kDirect), from a block filled with a number (kConstant; once, or for
  // each step if there are many), from a block filled once with repetitions of the inner dimension (kPeriodic), or from
  // a block that is filled for each call (kGather).
  enum class Mode : uint8_t { kDirect, kConstant, kPeriodic, kGather };
  struct Register {
    Mode mode = Mode::kGather;  // inputs only
    bool flat = false;          // its elements are contiguous
    bool is_number = false;     // only compiled steps read it, as a number
    int8_t buffer = -1;
    int16_t last_use = -1;
    C number{};
    const Access* access = nullptr;
    LoadFunction<C> load = nullptr;
  };

  // Steps that run as compiled code.
  struct Compiled {
    int begin = 0, end = 0;  // steps
    std::shared_ptr<const StepCode> code;
    absl::InlinedVector<uint8_t, 8> inputs;   // registers
    absl::InlinedVector<uint8_t, 4> outputs;  // registers
    absl::InlinedVector<C, 8> numbers;
  };

  Register plan_input(const LoopInput<C>& input) const;
  void find_compiled(bool often);
  void add_compiled(int begin, int end, bool often);
  bool is_read_outside(int step, int begin, int end) const;
  void plan_buffers();
  int8_t allocate_buffer();
  // Processes elements [begin, end) on the calling thread. `to` is where a direct output has the element `begin`.
  void run_range(int64_t begin, int64_t end, C* to);
  // Writes the number n times.
  void fill(C number, int64_t n, C* to) const;
  void run_rows(int64_t begin, int64_t end, C* to, const C** values, C (*buffers)[kBlock]);
  void run_whole_rows(int64_t begin, int64_t end, C* to, C (*buffers)[kBlock]) const;
  // Computes n elements from the inputs' `values`.
  void run_steps(int64_t at, int64_t n, C* out, const C** values, C (*buffers)[kBlock]);
  // Where an input of another mode than kGather is read; null: it is a number.
  const C* read(const Register& r, int64_t at, C (*buffers)[kBlock]) const;
  // Where the elements of a gathered input are stored.
  C* place_of(const Register& gathered, C* out, C (*buffers)[kBlock]) const;
  void run_compiled(const Compiled& steps, int64_t at, int64_t n, C* out, const C** values, C (*buffers)[kBlock]) const;
  // Where a step writes its result.
  C* result_of(int step, int64_t at, C* out, C (*buffers)[kBlock]) const;
  void fill_once(int64_t n, C (*buffers)[kBlock]) const;
  int64_t block_at(int64_t at, int64_t end) const;
  bool reads_rows_in_place(absl::Span<const LoopInput<C>> inputs) const;
  int64_t inner() const { return space_.sizes.empty() ? 1 : space_.sizes.back(); }
  const C* gather(const Register& from, int64_t at, int64_t n, C* buffer) const;
  void scatter(const C* from, int64_t at, int64_t n) const;
  // Calls f(offset, done, rows) for elements [at, at + n) of an operand; `done` counts the elements already
  // processed.
  template <typename F>
  void for_each_row_range(const Strides& strides, int64_t at, int64_t n, F f) const;

  const Space& space_;
  absl::Span<const Step<C>> steps_;
  const Access& output_;
  const BlockConversions<C>& conversions_;
  int num_inputs_;
  absl::InlinedVector<Register, 6> registers_;
  absl::InlinedVector<Compiled, 1> compiled_;  // in order
  int8_t refilled_ = -1;  // the first of kMaxStepInputs buffers for constants; -1: they keep theirs
  uint32_t free_buffers_ = ~uint32_t{0};
  int num_buffers_ = 0;
  int64_t block_ = kBlock;  // maximum number of elements per block
  bool flat_output_;
  bool by_rows_;  // no block extends over the end of a row
  bool direct_output_;
  bool past_cache_;
  std::atomic<bool> divided_by_zero_{false};
};

}  // namespace tt::cpu
