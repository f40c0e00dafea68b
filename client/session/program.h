// client::Program: calls that the engine runs as one instruction.
//
// A ProgramTrace (program_trace.h) makes it. The Program is defined in the engine at its first run; every run then
// takes one instruction, whatever the Program's size, and does not wait: the rules infer the results' metadata, once
// per signature of the inputs.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "client/session/session.h"
#include "client/session/tensor.h"
#include "client/session/traced_sizes.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"
#include "proto/wire.h"

namespace tt::client {

// Of one session. Used by one thread at a time, that of the session's tensors. The last reference drops the Program in
// the engine; it never waits.
class Program final : public RefCounted {
 public:
  struct RunOptions {
    // Runs have the bits of single calls, because the engine replaces no calls by operators that compute the same
    // differently.
    bool exact = false;
    // The part, 0 to 1, of the bytes that forward keeps for backward passes of the Program. The engine computes other
    // values again, those first that take the least time per byte.
    double memory_budget = 1;
  };
  ~Program() override;

  // The outputs for these inputs, of which there are as many as when the Program was traced; their sizes and dtypes may
  // differ if the rules accept them and what the function has required of sizes holds: otherwise throws Error
  // (ValueError). Calls of the Program are recorded for backward where they were when it was traced,
  // unless `options.grad` is false. Tensors that the function used without having received them are inputs, too, with
  // the values that they have at the run. Sets or accumulates `.grad` of leaves as the function has. Throws Error as a
  // call does; an error of an instruction of the Program is stored in all outputs and gradients.
  std::vector<Tensor> run(absl::Span<const Tensor> inputs, const CallOptions& options);

  // Sends the definition to the engine, which otherwise happens at the first run. Does not wait.
  void define(uint32_t site);
  // The Program before and after the engine's passes, as text. Waits for the engine.
  std::string explain(absl::Span<const Tensor> inputs, uint32_t site);
  // The calls that backends execute for forward and backward, as JSON (engine/schema/json_text.h). The names 1, 2, ...
  // are the inputs in the order of `order()`. Waits for the engine. Throws Error (NotImplementedError).
  std::string expanded(absl::Span<const Tensor> inputs, uint32_t site);
  // By name: numbers below inputs() are the caller's inputs, larger ones captured tensors.
  const std::vector<size_t>& order() const { return order_; }
  // The Program as it was traced.
  std::string text() const { return to_string(traced_); }
  const Session& session() const { return *session_; }
  // The session's number of the Program; 0 before its first run.
  int64_t number() const { return number_; }
  size_t instructions() const { return traced_.instructions().size(); }
  size_t inputs() const { return inputs_; }
  // Tensors that the function used without having received them.
  absl::Span<const Tensor> captured() const { return captured_; }
  // Where an output comes from.
  struct Output {
    enum class From : uint8_t { kResult, kInput, kCaptured, kNone } from;
    size_t index;
    // The function has returned it after a backward pass that freed its graph: it requires grad, but another pass
    // raises.
    bool is_freed = false;
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  // The definition that the engine receives (docs/wire.md, "Programs"): a serialized v1::Frame. Contains source lines
  // until the first run.
  std::string definition() const;
  // Whether restored() can make an equal Program in another process: one that has not run yet, and that depends on
  // nothing but the metadata of its inputs, none of which it differentiates.
  bool can_be_stored() const;
  // What restored() needs.
  struct Stored {
    std::string definition;
    std::vector<size_t> order;
    size_t written = 0;
    std::vector<size_t> outputs;  // by output: the number of a result
    bool exact = false;
  };
  // A Program that can_be_stored(), for inputs of the metadata that it was traced with, and for a run with gradients if
  // `grad`. Throws Error (ValueError) if it is invalid for the inputs, and Error (NotImplementedError) for an operator
  // that this client does not have.
  static Ref<Program> restored(Ref<Session> session, absl::Span<const Tensor> inputs, const Stored& stored, bool grad);
  // The last inputs in order, which a run changes.
  size_t written() const { return written_; }
  bool is_exact() const { return options_.exact; }
  // What sizes of the inputs must satisfy, over the names of the definition.
  absl::Span<const SizeRequirement> requirements() const { return requirements_; }
  // The metadata of the Program's results, to which `outputs()` refer, for inputs of this metadata. Throws Error
  // (ValueError) if runs with such inputs do.
  std::vector<TensorMeta> infer(absl::Span<const Tensor> inputs) const;

 private:
  friend class ProgramTrace;
  // What the function has done with `.grad` of a leaf.
  struct LeafGrad {
    Output leaf;
    Output set;          // the tensor that it has assigned; kNone: it has cleared `.grad`
    Output accumulated;  // kNone if it has not called backward() after that
    bool is_set = false;
    // The function has read the accumulated gradient, which would be another one if there was a gradient before the
    // run.
    bool is_read = false;
    // The function has accumulated a gradient in a leaf that had none, and replaced it.
    bool begins_without = false;
  };
  // `.grad` of a leaf that the function has read before it has changed it: null if there was none.
  struct ReadGrad {
    Output leaf;
    Tensor value;
  };
  // What every run's input has in common with the traced one.
  struct InputKind {
    DType dtype;
    Device device;
  };
  // What a backward pass of the function has used an input for.
  struct InputUse {
    bool requires_grad = false;
    bool is_differentiated = false;
    std::vector<int64_t> hooks;  // numbers of the hooks of a leaf, whose calls the Program contains
  };
  // What the rules infer for inputs of one signature.
  struct Signature {
    std::vector<TensorMeta> inputs;
    bool grad;
    std::vector<TensorMeta> results;
    std::vector<bool> has_gradient;  // by input in order: whether an output's gradient depends on it
    uint64_t hash;

    bool is_of(absl::Span<const Tensor> ordered, bool with_grad) const;
  };
  // At least kFewSignatures are kept; more while they have at most kMaxMetas inputs and results together.
  static constexpr size_t kFewSignatures = 16, kMaxSignatures = 256, kMaxMetas = 65536;

  Program(Ref<Session> session, tt::Program traced, size_t inputs, std::vector<Tensor> captured,
          std::vector<size_t> order, std::vector<InputKind> kinds, size_t written, const RunOptions& options,
          std::vector<Output> outputs, std::vector<LeafGrad> grads, std::vector<ReadGrad> read_grads,
          std::vector<InputUse> uses, std::vector<v1::Site> sites, std::vector<SizeRequirement> requirements,
          std::vector<std::pair<Slot, size_t>> ranks);
  ProgramTypes infer_types(absl::Span<const TensorMeta* const> inputs, bool grad) const;
  void check_requirement(const SizeRequirement& requirement, const ProgramTypes& types) const;
  std::string describe(SizeExpression expression) const;
  std::string describe(uint16_t op, absl::Span<const Tensor> inputs, uint32_t site);
  void check_kinds(absl::Span<const Tensor> ordered) const;
  // A run without gradients of a Program that differentiates values of its own only, such as torch.func.grad(f).
  std::vector<Tensor> run_without_history(absl::Span<const Tensor> inputs, const CallOptions& options);
  bool differentiates_own_values() const;
  void check_differentiated(absl::Span<const Tensor> ordered, bool grad) const;
  void check_grads(absl::Span<const Tensor> inputs) const;
  void store_grads(absl::Span<const Tensor> inputs, absl::Span<const Tensor> results, uint32_t site) const;
  Tensor tensor_of(const Output& output, absl::Span<const Tensor> inputs, absl::Span<const Tensor> results) const;
  std::vector<Tensor> in_order(absl::Span<const Tensor> inputs) const;
  const Signature& infer_results(absl::Span<const Tensor> ordered, bool grad);
  const Signature& add_signature(absl::Span<const Tensor> ordered, bool grad, uint64_t hash, const ProgramTypes& types);

  const Ref<Session> session_;
  const tt::Program traced_;  // over the names 1, 2, ... of the inputs in order
  const size_t inputs_;
  const std::vector<Tensor> captured_;
  // The inputs in the order of the Program: numbers below inputs_ are the caller's, larger ones captured tensors. The
  // last `written_` are changed by a run.
  const std::vector<size_t> order_;
  const std::vector<InputKind> kinds_;  // by input in order: the function may have decided by them
  const size_t written_;
  const RunOptions options_;
  const std::vector<Output> outputs_;
  const std::vector<LeafGrad> grads_;
  const std::vector<ReadGrad> read_grads_;
  const std::vector<InputUse> uses_;                  // by input in order; empty if the function differentiates nothing
  std::vector<v1::Site> sites_;                       // until the Program is defined
  const std::vector<SizeRequirement> requirements_;   // by instruction
  const std::vector<std::pair<Slot, size_t>> ranks_;  // the number of dimensions of each value
  int64_t number_ = 0;                                // in the engine; 0: not defined yet
  std::list<Signature> signatures_;                   // the one used last first
  absl::flat_hash_map<uint64_t, std::list<Signature>::iterator> by_hash_;
};

// The session's Programs, as the operator program_counters describes them: a row each. Waits for the engine.
std::vector<std::vector<int64_t>> program_counters(Session& session, uint32_t site);
// The session's repeated windows of instructions that were compiled, as the operator window_counters describes them.
std::vector<std::vector<int64_t>> window_counters(Session& session, uint32_t site);

}  // namespace tt::client
