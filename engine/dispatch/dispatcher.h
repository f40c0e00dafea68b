// Dispatcher: maps an operator call to the kernel that executes it.
//
// A call passes its keys in order: autocast if the session uses mixed precision and the operator has a policy
// (engine/dispatch/autocast.h), autograd if a gradient may be recorded, then one backend. The kAutograd kernel does
// its work and redispatches below its key; a backend's kernel computes the result. Kernels are registered at start by
// explicit calls (no static initialisers); afterwards the table is read-only and thread-safe.
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

// One call in progress. Lives on the caller's stack.
struct Call {
  const Op* op = nullptr;
  Args args;
  // Before the backend runs, each element is undefined or is the out tensor of its result. Afterwards, the elements are
  // the results.
  Tensors outputs;
  bool into = false;  // the caller passed out tensors
  // Number of operators that the kernel runs as one loop. Only the calls that an observer of kernels gets set it.
  uint32_t chain_length = 1;
  Inference inferred;
  KeySet keys;

  Tensor tensor(int i) const { return Tensor::from(args[i].tensor); }
};

using Kernel = void (*)(Call& call);

class Dispatcher {
 public:
  // The process's table. Never destroyed: calls may outlive main.
  static Dispatcher& instance();

  // A separate table with the default entries: the Meta backend and the views.
  Dispatcher();

  void set(uint16_t op, Key key, Kernel kernel);
  // Sets the kernel at `key` for operators that have no kernel there. Null (the default): the call continues at the
  // next key; at a backend key it throws NotImplementedError.
  void set_fallback(Key key, Kernel kernel);
  // Sets the kernel that runs several pointwise operators as one loop on a backend (engine/dispatch/chain.h).
  void set_chain_kernel(DeviceType backend, ChainKernel kernel) { chains_[static_cast<size_t>(backend)] = kernel; }
  // Null if the backend has none.
  ChainKernel chain_kernel(DeviceType backend) const { return chains_[static_cast<size_t>(backend)]; }
  // The same for chains that are planned once (engine/dispatch/chain.h).
  void set_chain_preparation(DeviceType backend, ChainPreparation preparation) {
    preparations_[static_cast<size_t>(backend)] = preparation;
  }
  ChainPreparation chain_preparation(DeviceType backend) const { return preparations_[static_cast<size_t>(backend)]; }
  // Sets the kernels that exist at `from` at `to` as well, where `to` has none: before a backend registers its own, the
  // kernels at its key are those of operators that compute nothing on a device.
  void adopt_kernels(Key to, Key from);
  // Marks an operator whose kernel may throw Suspended (engine/program/suspension.h). The kernel runs in a cancelled
  // frame too, and ends what it waited for: it discards the uploaded bytes, leaves the collective, or stops writing.
  void set_suspending(uint16_t op) { row(op).suspends = true; }
  bool suspends(uint16_t op) const { return op < rows_.size() && rows_[op].suspends; }
  // Sets a composite, which runs before the autograd key and for every backend.
  void set_composite(uint16_t op, Kernel kernel);

  // Infers the results, checks the out tensors, computes the keys, and runs the call. Includes the autograd key if a
  // gradient may have to be recorded or the operator has its own kernel there. Throws Error; the results are then
  // undefined. Requires that check_args has passed.
  void dispatch(Call& call) const;
  // Runs the call's next kernel after `key`. Called by kernels above the backends. A call below autograd increments the
  // version of every tensor that it wrote (out tensors, `Tensor(w)` arguments) before it returns.
  void redispatch(Call& call, Key key) const { run(call, call.keys.below(key)); }

 private:
  struct Row {
    std::array<Kernel, kNumKeys> kernels{};
    Kernel composite = nullptr;
    bool writes = false;  // some parameter is `Tensor(w)`
    bool suspends = false;
  };

  Row& row(uint16_t op);
  void run(Call& call, KeySet keys) const;
  // The last stage: runs the backend's kernel and increments the versions of written tensors.
  void run_backend(Call& call, const Row& row, Key key) const;

  std::vector<Row> rows_;  // by op id
  std::array<Kernel, kNumKeys> fallbacks_{};
  std::array<ChainKernel, kNumDeviceTypes> chains_{};             // by DeviceType
  std::array<ChainPreparation, kNumDeviceTypes> preparations_{};  // by DeviceType
};

// Allocates each undefined call.outputs[i] as inferred. Called by backend kernels, which may then write every output.
// Out tensors have the inferred shape, but may have another dtype or layout, or alias an input; the functions below
// handle these cases.
void allocate_outputs(Call& call);

// Passes plain outputs (contiguous, the inferred dtype, no alias of an argument) to `kernel`, then copies the results
// to the out tensors. Used for kernels that support only plain outputs, such as those boxed from typed functions.
void run_with_plain_outputs(Call& call, Kernel kernel);

// Runs a pointwise kernel, which can write any layout and dtype. An out tensor is written directly if it shares no byte
// with an argument, or if it has exactly an argument's elements (each element is read before it is written). Other
// results are computed in a temporary and then copied.
void run_with_separate_outputs(Call& call, Kernel kernel);

// For kernels that find errors of values after they have begun to write. Passes new outputs to `kernel`, and copies
// them to the out tensors if it succeeds: a call that fails leaves its targets as they were.
void run_with_temporary_outputs(Call& call, Kernel kernel);

// Runs a kernel that writes new results in the layouts that infer() chose, and out tensors that are contiguous.
void run_with_inferred_outputs(Call& call, Kernel kernel);

// Runs a kernel that copies its first argument and changes elements of the copy, in any layout. An out tensor of the
// inferred dtype is written directly if it has exactly the first argument's elements, or shares no byte with any
// argument. `x.index_put_()` then accesses only the elements that it changes.
void run_with_updated_output(Call& call, Kernel kernel);

// Copies `source` (same sizes, any castable dtype and layout) into `target`, as the `assign` operator does, but below
// autograd. Called by kernels.
void copy_into(const Tensor& target, const Tensor& source);

}  // namespace tt
