// client::Program: calls that the engine runs as one instruction.
//
// A ProgramTrace records the calls that a function makes, without sending them, and makes a Program of them. The
// Program is defined in the engine at its first run; every run then takes one instruction, whatever the Program's size,
// and does not wait: the rules infer the results' metadata, once per signature of the inputs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "client/session/graph.h"
#include "client/session/session.h"
#include "client/session/tensor.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"
#include "proto/wire.h"

namespace tt::client {

// Of one session. Used by one thread at a time, that of the session's tensors. The last reference drops the Program in
// the engine; it never waits.
class Program final : public RefCounted {
 public:
  ~Program() override;

  // The outputs for these inputs, of which there are as many as when the Program was traced; their sizes and dtypes may
  // differ if the rules accept them. Calls of the Program are recorded for backward where they were when it was traced,
  // unless `options.grad` is false. Tensors that the function used without having received them are inputs, too, with
  // the values that they have at the run. Sets or accumulates `.grad` of leaves as the function has. Throws Error as a
  // call does; an error of an instruction of the Program is stored in all outputs and gradients.
  std::vector<Tensor> run(absl::Span<const Tensor> inputs, const CallOptions& options);

  // The Program before and after the engine's passes, as text. Waits for the engine.
  std::string explain(absl::Span<const Tensor> inputs, uint32_t site);
  // The Program as it was traced.
  std::string text() const { return to_string(traced_); }
  size_t instructions() const { return traced_.instructions().size(); }
  size_t inputs() const { return inputs_; }
  // Tensors that the function used without having received them.
  absl::Span<const Tensor> captured() const { return captured_; }

 private:
  friend class ProgramTrace;
  // Where an output comes from.
  struct Output {
    enum class From : uint8_t { kResult, kInput, kCaptured, kNone } from;
    size_t index;
    // The function has returned it after a backward pass that freed its graph: it requires grad, but another pass
    // raises.
    bool is_freed = false;
  };
  // What the function has done with `.grad` of a leaf.
  struct LeafGrad {
    Output leaf;
    Output set;          // the tensor that it has assigned; kNone: it has cleared `.grad`
    Output accumulated;  // kNone if it has not called backward() after that
    bool is_set = false;
    // The function has read the accumulated gradient, which would be another one if there was a gradient before the
    // run.
    bool is_read = false;
  };
  // `.grad` of a leaf that the function has read before it has changed it: null if there was none.
  struct ReadGrad {
    Output leaf;
    Tensor value;
  };
  // What a backward pass of the function has used an input for.
  struct InputUse {
    bool requires_grad = false;
    bool is_differentiated = false;
  };
  // What the rules infer for inputs of one signature.
  struct Signature {
    std::vector<TensorMeta> inputs;
    bool grad;
    std::vector<TensorMeta> results;
  };
  static constexpr size_t kMaxSignatures = 16;

  Program(Ref<Session> session, tt::Program traced, size_t inputs, std::vector<Tensor> captured,
          std::vector<size_t> order, size_t written, bool exact, std::vector<Output> outputs,
          std::vector<LeafGrad> grads, std::vector<ReadGrad> read_grads, std::vector<InputUse> uses,
          std::vector<v1::Site> sites);
  void define(uint32_t site);
  void check_differentiated(absl::Span<const Tensor> ordered, bool grad) const;
  void check_grads(absl::Span<const Tensor> inputs) const;
  void store_grads(absl::Span<const Tensor> inputs, absl::Span<const Tensor> results, uint32_t site) const;
  Tensor tensor_of(const Output& output, absl::Span<const Tensor> inputs, absl::Span<const Tensor> results) const;
  std::vector<Tensor> in_order(absl::Span<const Tensor> inputs) const;
  const std::vector<TensorMeta>& infer_results(absl::Span<const Tensor> ordered, bool grad);

  const Ref<Session> session_;
  const tt::Program traced_;  // over the names 1, 2, ... of the inputs in order
  const size_t inputs_;
  const std::vector<Tensor> captured_;
  // The inputs in the order of the Program: numbers below inputs_ are the caller's, larger ones captured tensors. The
  // last `written_` are changed by a run.
  const std::vector<size_t> order_;
  const size_t written_;
  const bool exact_;
  const std::vector<Output> outputs_;
  const std::vector<LeafGrad> grads_;
  const std::vector<ReadGrad> read_grads_;
  const std::vector<InputUse> uses_;      // by input in order; empty if the function differentiates nothing
  const std::vector<bool> has_gradient_;  // by input in order: whether an output's gradient depends on it
  std::vector<v1::Site> sites_;           // until the Program is defined
  int64_t number_ = 0;                    // in the engine; 0: not defined yet
  std::vector<Signature> signatures_;
};

// Records the calls of this thread for one session, from its construction to finish() or its destruction. Traces do not
// nest.
//
// Tensors computed meanwhile have metadata but no value: reading one throws. Tensors that exist outside can be read,
// and become inputs of the Program when a call uses them. What Python computes from values or metadata becomes
// constant.
class ProgramTrace {
 public:
  // `examples` determine the metadata of the inputs. Throws Error (RuntimeError) if this thread is tracing already.
  ProgramTrace(Ref<Session> session, absl::Span<const Tensor> examples);
  ~ProgramTrace();
  ProgramTrace(const ProgramTrace&) = delete;
  ProgramTrace& operator=(const ProgramTrace&) = delete;

  // Stand for the inputs.
  absl::Span<const Tensor> inputs() const { return inputs_; }
  // Ends the trace. `exact`: runs have the bits of single calls, because the engine replaces no calls by operators that
  // compute the same differently. Throws Error if an output shares memory with an input or with another output.
  Ref<Program> finish(absl::Span<const Tensor> outputs, bool exact);
  // Ends the trace, without a Program. Its tensors cannot be used any more.
  void stop();

  // The trace of the calling thread for this session, or null.
  static ProgramTrace* of(const Session& session) {
    // Every call of every session asks; an access of a thread's variable costs a function call in a shared library.
    return active_count_.load(std::memory_order_relaxed) == 0 ? nullptr : current(session);
  }
  // Whether the calling thread traces a Program of any session.
  static bool is_active();
  // Instead of Session::call().
  Tensors call(const Op& op, Args args, const CallOptions& options);
  // Instead of Session::call_with_metas().
  Tensors call_with_metas(const Op& op, Args args, const CallOptions& options);
  // Instead of setting or accumulating `.grad` of a leaf, which keeps the new gradient until the trace ends.
  void set_grad(const Tensor& leaf, Tensor grad);
  void accumulate_grad(const Tensor& leaf, Tensor gradient, uint32_t site);
  // Call before the function reads `.grad`, so that runs are refused in which it would read another tensor.
  void read_grad(const Tensor& tensor);
  // Whether the node belongs to a call of the trace.
  bool has_recorded(const GraphNode& node) const { return node.sequence() > first_sequence_; }

  // While it exists, calls of the thread are sent as usual: for an upload, whose result becomes an input.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    ProgramTrace* const paused_;
  };

 private:
  static ProgramTrace* current(const Session& session);
  Tensor make(TensorMeta meta);
  Slot slot_of(const Handle& tensor);
  void check_target(const Op& op, const Handle& target, bool grad, bool records);
  Tensors results_of(const Op& op, Args args, Inference& inference);
  uint32_t site_of(uint32_t site);
  Program::Output output_of(const Tensor& output, std::vector<Slot>* results);
  Tensor without_freed_graph(const Tensor& output);
  Program::Output source_of(const Tensor& input) const;
  // A leaf whose `.grad` has changed.
  struct ChangedGrad {
    Tensor leaf;
    Tensor before;       // at the beginning of the trace
    Tensor set;          // that the function has assigned
    Tensor accumulated;  // of its backward passes since then
    bool is_set = false;
  };
  ChangedGrad& changed(const Tensor& leaf);
  void add(const Op& op, Args args, absl::Span<const Tensor> results, const CallOptions& options);
  bool is_read(const Tensor& value) const;
  std::vector<Program::LeafGrad> grads(std::vector<Slot>* results);

  static std::atomic<int> active_count_;  // traces of all threads

  const Ref<Session> session_;
  const uint64_t serial_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> captured_;
  absl::flat_hash_map<uint64_t, Slot> captured_slots_;  // by handle; names of their own in program_
  absl::flat_hash_map<uint64_t, Slot> storages_;        // of outputs: the name by storage
  std::vector<uint64_t> written_;                       // storages of inputs that a call writes
  std::vector<ChangedGrad> changed_grads_;
  std::vector<std::pair<Tensor, Tensor>> read_grads_;  // tensors and their `.grad`, before any change
  absl::flat_hash_set<uint64_t> differentiated_;  // handles with respect to which backward passes compute gradients
  bool differentiates_ = false;
  const uint64_t first_sequence_;  // of nodes of the client's graph that exist when the trace begins
  tt::Program program_;
  Slot last_ = 0;
  std::vector<v1::Site> sites_;
  absl::flat_hash_map<uint32_t, uint32_t> site_numbers_;  // the session's to the Program's
  bool active_ = true;
};

// Whether a handle stands for a value of a trace, which the engine does not have.
inline constexpr uint64_t kTracedHandle = uint64_t{1} << 63;
inline bool is_traced(uint64_t handle) { return (handle & kTracedHandle) != 0; }

}  // namespace tt::client
