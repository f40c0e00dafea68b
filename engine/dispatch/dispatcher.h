// Dispatcher: from an operator call to the kernel that does it.
//
// A call passes the keys that apply to it in order: autograd where a gradient may be recorded, then one backend. The
// kernel at kAutograd does its part and redispatches below itself; a backend's kernel computes. Registration happens at start, by explicit calls (no static initialisers); after
// that the table is read-only and thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/dispatch/chain.h"
#include "engine/dispatch/key_set.h"
#include "engine/schema/op.h"
#include "engine/tensor/tensor.h"

namespace tt {

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
  // The process's table. Not destroyed: calls may outlive main.
  static Dispatcher& instance();

  // Another table, with what every table starts with: the Meta backend and the views.
  Dispatcher();

  void set(uint16_t op, Key key, Kernel kernel);
  // What runs at `key` for every operator without a kernel of its own there. Null (the default):
  // the call falls through to the next key; at a backend, NotImplementedError.
  void set_fallback(Key key, Kernel kernel);
  // What runs several pointwise operators as one loop on a backend (engine/dispatch/chain.h).
  void set_chain_kernel(DeviceType backend, ChainKernel kernel) { chains_[static_cast<size_t>(backend)] = kernel; }
  // Null where a backend has none.
  ChainKernel chain_kernel(DeviceType backend) const { return chains_[static_cast<size_t>(backend)]; }
  // Composite operators: run where autograd would see the call, whatever the backend.
  void set_composite(uint16_t op, Kernel kernel);

  // Infers, checks the landing, computes the keys, and runs the call. The autograd key is among them
  // where a gradient may have to be recorded, or the operator has a kernel of its own there. Throws
  // Error; results are undefined then.
  // Requires check_args to have passed.
  void dispatch(Call& call) const;
  // Goes on below `key`. For kernels above the backends. A call below autograd bumps the version of
  // what it wrote (outputs that were given, `Tensor(w)` arguments) before it returns.
  void redispatch(Call& call, Key key) const { run(call, call.keys.below(key)); }

 private:
  struct Row {
    std::array<Kernel, kNumKeys> kernels{};
    Kernel composite = nullptr;
    bool writes = false;  // some parameter is `Tensor(w)`
  };

  Row& row(uint16_t op);
  void run(Call& call, KeySet keys) const;
  // The last station: computes, and counts the writes that this was.
  void run_backend(Call& call, const Row& row, Key key) const;

  std::vector<Row> rows_;  // by op id
  std::array<Kernel, kNumKeys> fallbacks_{};
  std::array<ChainKernel, 3> chains_{};  // by DeviceType
};

// For backend kernels: makes call.outputs[i] real, as inferred, where it is undefined. A backend
// kernel may then write every output; outputs that were given have the inferred shape but may
// have another dtype or layout, or alias an input: `landing` below takes care of that.
void allocate_outputs(Call& call);

// For backend kernels that cannot write just anywhere: gives plain outputs (contiguous, the
// inferred dtype, no alias of an argument) to `kernel`, then moves the results to where they
// were to land. Kernels boxed from typed functions go through it.
void run_with_plain_outputs(Call& call, Kernel kernel);

// For pointwise kernels, which write any layout and dtype: an output that was given stays where it
// shares no byte with an argument or lies exactly over it (each element is read before it is
// written); others are computed aside and then moved.
void run_with_separate_outputs(Call& call, Kernel kernel);

// For kernels that copy their first tensor and change elements of the copy, in any layout: an output
// of the inferred dtype that lies exactly over that tensor, or over none, stays where it is, so that
// `x.index_put_()` touches no more than what it names.
void run_with_updated_output(Call& call, Kernel kernel);

// For kernels: writes `source` (same sizes, any castable dtype and layout) over `target`, below
// autograd. What the `assign` operator does.
void copy_into(const Tensor& target, const Tensor& source);

}  // namespace tt
