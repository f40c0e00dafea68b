// client::ProgramTrace: records the calls that a function makes, without sending them, and makes a Program of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "client/session/graph.h"
#include "client/session/program.h"
#include "client/session/session.h"
#include "client/session/tensor.h"
#include "engine/schema/program.h"
#include "proto/wire.h"

namespace tt::client {

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
  // The calls until end_region() are a region of which backward computes the results again instead of keeping them.
  // Regions may be nested: the outer one counts.
  void begin_region() { region_ += depth_++ == 0; }
  void end_region() { --depth_; }
  // The calling thread's trace, or null.
  static ProgramTrace* active();
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
  int depth_ = 0, region_ = 0;  // nested regions; all regions so far
  std::vector<v1::Site> sites_;
  absl::flat_hash_map<uint32_t, uint32_t> site_numbers_;  // the session's to the Program's
  bool active_ = true;
};

// Whether a handle stands for a value of a trace, which the engine does not have.
inline constexpr uint64_t kTracedHandle = uint64_t{1} << 63;
inline bool is_traced(uint64_t handle) { return (handle & kTracedHandle) != 0; }

}  // namespace tt::client
