// client::ProgramTrace: records the calls that a function makes, without sending them, and makes a Program of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "client/session/graph.h"
#include "client/session/program.h"
#include "client/session/session.h"
#include "client/session/size_checks.h"
#include "client/session/tensor.h"
#include "client/session/traced_sizes.h"
#include "engine/schema/program.h"
#include "proto/wire.h"

namespace tt::client {

// Which sizes are constants of a traced Program.
struct TraceOptions {
  struct Size {
    size_t input;
    size_t dim;
  };
  bool are_sizes_constant = false;  // those of all inputs
  std::vector<Size> constant_sizes = {};
  // The number of the line of the function that is running now (Session::site()); for messages. May be null.
  std::function<uint32_t()> current_site = nullptr;
  // Calls infer the metadata of their results, also under autocast, and nothing is recorded: finish() throws.
  bool only_metadata = false;
  // With only_metadata: calls are recorded for size_checks(), and inputs may have sizes that differ from run to run.
  // Throws Error under autocast.
  bool records_sizes = false;
};

// Records the calls of this thread for one session, from its construction to finish() or its destruction. Traces do not
// nest.
//
// Tensors computed meanwhile have metadata but no value: reading one throws. Tensors that exist outside can be read,
// and become inputs of the Program when a call uses them. What the function computes from sizes is computed again for
// every run, or required of it (traced_sizes.h). What it computes from values and other metadata becomes constant.
class ProgramTrace {
 public:
  // The bit that is set in the handles of values that only exist while a function is traced.
  static constexpr uint64_t kTracedHandle = uint64_t{1} << 63;
  // `examples` determine the metadata of the inputs. Throws Error (RuntimeError) if this thread is tracing already.
  ProgramTrace(Ref<Session> session, absl::Span<const Tensor> examples, const TraceOptions& options = {});
  ~ProgramTrace();
  ProgramTrace(const ProgramTrace&) = delete;
  ProgramTrace& operator=(const ProgramTrace&) = delete;

  // Stand for the inputs.
  absl::Span<const Tensor> inputs() const { return inputs_; }
  // Adds a stand-in for a tensor, of which the sizes `dims` differ from run to run. Throws Error unless the trace
  // infers only metadata, and for `dims` unless it records sizes.
  Tensor add_input(const Tensor& example, absl::Span<const size_t> dims = {});
  // What runs must have in common with the calls so far. The trace must record sizes, and cannot be used after this.
  std::shared_ptr<SizeChecks> size_checks();
  // Ends the trace. Throws Error if an output shares memory with an input or with another output, and Error
  // (ValueError) unless the budget is a number from 0 to 1.
  Ref<Program> finish(absl::Span<const Tensor> outputs, const Program::RunOptions& options);
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
  // The leaves whose `.grad` is `grad`, of those whose gradient the function has read or changed.
  std::vector<Tensor> leaves_with_grad(const Tensor& grad) const;
  // The calls until end_region() are a region of which backward computes the results again instead of keeping them.
  // Regions may be nested: the outer one counts.
  void begin_region() { region_ += depth_++ == 0; }
  void end_region() { --depth_; }
  // Infers the results of a call for the example, without gradients.
  void infer_example(const Op& op, Args args, Inference* inferred) const;
  // The calling thread's trace, or null.
  static ProgramTrace* active();
  // Forgets the casts of parameters that autocast keeps within a region.
  void forget_casts() { casts_.clear(); }
  // Whether the node belongs to a call of the trace.
  bool has_recorded(const GraphNode& node) const { return node.sequence() > first_sequence_; }

  // A number that the function has computed from sizes. After the trace it is the example's number. Used on the trace's
  // thread until then. Throws Error (RuntimeError) on another one.
  class Number {
   public:
    int64_t value() const { return number_.value; }
    bool is_constant() const { return number_.is_constant() || !trace(); }
    // Whether its trace makes a Program, which can compute floats from it.
    bool is_of_program() const;
    // The number, which runs are required to have.
    int64_t constant() const;
    // Replaces the number among a call's arguments.
    int64_t mark() const;
    // Throws Error (ValueError) for a division by zero, or a result beyond 64 bits.
    static Number combine(SizeTerm::Kind kind, const Number& a, const Number& b);
    static bool compare(SizeRequirement::Relation relation, const Number& a, const Number& b);
    explicit Number(int64_t value) : number_{value} {}

   private:
    friend class ProgramTrace;
    struct Scope;
    Number(const TracedNumber& number, std::shared_ptr<const Scope> scope)
        : number_(number), scope_(std::move(scope)) {}
    ProgramTrace* trace() const;

    TracedNumber number_;
    std::shared_ptr<const Scope> scope_;  // null for a constant
  };
  // The trace to which a tensor belongs if it is this thread's, which may be paused; or null.
  static ProgramTrace* of_tensor(const Handle& tensor) {
    return (tensor.id & kTracedHandle) == 0 ? nullptr : open_trace_of(tensor);
  }
  // The size of a tensor of this trace as the function reads it.
  Number size_of(const Handle& tensor, size_t dim);
  // The number that mark() has given, or another one.
  Number number_of(int64_t marked);
  // These require of runs what the tensor has in the trace.
  void require_sizes(const Handle& tensor);
  void require_stride(const Handle& tensor, size_t dim);
  void require_offset(const Handle& tensor);
  void require_contiguity(const Handle& tensor);
  // Whether the function has received sizes that differ from run to run.
  bool gave_sizes() const { return sizes_.gave_expressions(); }

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
  static ProgramTrace* open_trace_of(const Handle& tensor);
  void require(SizeTerm::Kind kind, const Handle& tensor, size_t dim, int64_t value);
  Number number(const TracedNumber& traced);
  // Describes the line of the function that is running now.
  std::string where() const;
  Tensors call_sized(const Op& op, Args args, const CallOptions& options, absl::Span<const SizeArgument> sizes);
  // call() under autocast: the Program contains the casts.
  Tensors call_with_casts(const Op& op, Args args, const CallOptions& options);
  Tensor cast(const Tensor& tensor, DType dtype, const CallOptions& options);
  Tensors set_requires_grad(const Op& op, Args args, const CallOptions& options);
  Tensor make(TensorMeta meta);
  Slot slot_of(const Handle& tensor);
  void check_target(const Op& op, const Handle& target, bool grad, bool records);
  Tensors results_of(const Op& op, Args args, Inference& inference);
  uint32_t site_of(uint32_t site);
  Program::Output output_of(const Tensor& output, std::vector<Slot>* results);
  // Runs give gradients to no input that they write, and results no history that begins in the Program.
  void check_gradients_of(const Tensor& output) const;
  Tensor without_freed_graph(const Tensor& output);
  Program::Output source_of(const Tensor& input) const;
  // A leaf whose `.grad` has changed.
  struct ChangedGrad {
    Tensor leaf;
    Tensor before;       // at the beginning of the trace
    Tensor set;          // that the function has assigned
    Tensor accumulated;  // of its backward passes since then
    bool is_set = false;
    bool begins_without = false;  // the function has replaced what it has accumulated in a leaf without a gradient
  };
  ChangedGrad& changed(const Tensor& leaf);
  void add(const Op& op, Args args, absl::Span<const Tensor> results, const CallOptions& options,
           absl::Span<const SizeArgument> sizes);
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
  std::vector<Tensor> own_leaves_;                                  // that the function has made require gradients
  absl::flat_hash_map<uint64_t, std::pair<Tensor, Tensor>> casts_;  // by handle: a leaf, and what autocast made of it
  const uint64_t first_sequence_;  // of nodes of the client's graph that exist when the trace begins
  tt::Program program_;
  TracedSizes sizes_;
  const std::function<uint32_t()> current_site_;
  std::shared_ptr<Number::Scope> scope_;  // of the numbers; null until the first
  Slot last_ = 0;
  int depth_ = 0, region_ = 0;  // nested regions; all regions so far
  std::vector<v1::Site> sites_;
  absl::flat_hash_map<uint32_t, uint32_t> site_numbers_;  // the session's to the Program's
  const bool only_metadata_, records_sizes_;
  bool active_ = true;
};

// Whether a handle stands for a value of a trace, which the engine does not have.
inline bool is_traced(uint64_t handle) { return (handle & ProgramTrace::kTracedHandle) != 0; }

}  // namespace tt::client
