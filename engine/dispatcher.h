// Dispatcher: from an operator call to the kernel that does it.
//
// A call passes the keys that apply to it in order (profiler, autocast, autograd, then one
// backend). A kernel at a key does its part and redispatches below itself, or, at a backend,
// computes. Registration happens at start, by explicit calls (no static initialisers); after
// that the table is read-only and thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/rules/op.h"
#include "engine/tensor.h"

namespace tt {

// In the order in which a call meets them.
enum class Key : uint8_t { kProfiler, kAutocast, kAutograd, kMeta, kCUDA, kCPU };
inline constexpr int kNumKeys = 6;

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(Key k) : bits_(bit(k)) {}  // NOLINT: a key is a set of one
  constexpr KeySet with(Key k) const { return KeySet(static_cast<uint8_t>(bits_ | bit(k))); }
  // What is left once everything up to and including `k` has been passed.
  constexpr KeySet below(Key k) const {
    return KeySet(static_cast<uint8_t>(bits_ & ~((bit(k) << 1) - 1)));
  }
  constexpr bool has(Key k) const { return (bits_ & bit(k)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Key first() const { return static_cast<Key>(__builtin_ctz(bits_)); }

 private:
  constexpr explicit KeySet(uint8_t bits) : bits_(bits) {}
  static constexpr int bit(Key k) { return 1 << static_cast<int>(k); }
  uint8_t bits_ = 0;
};

// One call under way. Lives on the caller's stack.
struct Call {
  const Op* op = nullptr;
  Args args;
  // Before the backend runs: undefined, or the tensor that a result is to land in. After: results.
  Tensors outputs;
  bool into = false;  // outputs were given
  Inference inferred;
  KeySet keys;

  Tensor tensor(int i) const { return Tensor::from(args[i].tensor); }
};

using Kernel = void (*)(Call& call);

class Dispatcher {
 public:
  static Dispatcher& instance();

  void set(uint16_t op, Key key, Kernel kernel);
  // What runs at `key` for every operator without a kernel of its own there. Null (the default):
  // the call falls through to the next key; at a backend, NotImplementedError.
  void set_fallback(Key key, Kernel kernel);
  // Composite operators: run where autograd would see the call, whatever the backend.
  void set_composite(uint16_t op, Kernel kernel);

  // Infers, computes the keys, and runs the call. Throws Error; results are undefined then.
  // Requires check_args to have passed.
  void dispatch(Call& call) const;
  // Goes on below `key`. For kernels.
  void redispatch(Call& call, Key key) const { run(call, call.keys.below(key)); }

 private:
  void run(Call& call, KeySet keys) const;

  struct Row {
    std::array<Kernel, kNumKeys> kernels{};
    Kernel composite = nullptr;
  };
  std::vector<Row> rows_;  // by op id
  std::array<Kernel, kNumKeys> fallbacks_{};
};

// For backend kernels: makes call.outputs[i] real, as inferred, where it is undefined. A backend
// kernel may then write every output; outputs that were given have the inferred shape but may
// have another dtype or layout, or alias an input: `landing` below takes care of that.
void allocate_outputs(Call& call);

// For backend kernels that cannot write just anywhere: gives plain outputs (contiguous, the
// inferred dtype, no alias of an argument) to `kernel`, then moves the results to where they
// were to land. Kernels boxed from typed functions go through it.
void run_with_plain_outputs(Call& call, Kernel kernel);

}  // namespace tt
