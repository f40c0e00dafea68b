// DeferredCalls: executes pointwise calls later, several as one loop.
//
// The results of a call that is deferred have metadata, but no memory. They get it when another call needs them, or at
// flush(): then the calls that are still needed become one pointwise_chain (engine/composites/pointwise_chain.h), which
// computes the same bits. A result that nothing refers to by then is neither stored nor, if no other call reads it,
// computed. Every call that writes to a tensor is preceded by flush(), so that deferred calls read what they would have
// read at once.
//
// Arguments of deferred calls stay allocated until flush(); flush_if_large() bounds how many bytes they take. Nothing
// may use a result without the dispatcher, or make a view of it by other means, before flush(): kernels refuse it
// (MissingValues). Used by one thread, whose CallScope records no gradients meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/dispatch/call_recorder.h"
#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/missing_values.h"
#include "engine/schema/dtype.h"

namespace tt {

class DeferredCalls final : public CallRecorder {
 public:
  static constexpr size_t kMaxSteps = 32;
  // flush_if_large() allows arguments of these bytes, or of twice a result's if that is more.
  static constexpr uint64_t kMaxHeldBytes = 4 << 20;

  // Whether the engine's environment allows it, as for repeated calls: not if TELETENSOR_WINDOWS is "0".
  static bool is_enabled();

  DeferredCalls();
  // Forgets the calls that were not executed.
  ~DeferredCalls() override = default;
  DeferredCalls(const DeferredCalls&) = delete;
  DeferredCalls& operator=(const DeferredCalls&) = delete;

  bool take(Call& call) override;
  // Executes all calls. Throws Error of one of them; the results are then unusable, and has_lost() returns true.
  void flush();
  // Executes all calls if arguments that only they refer to, which single calls would have freed, take more bytes than
  // two results. Call when references to arguments were dropped. Throws as flush().
  void flush_if_large();
  // Whether results exist that have no values, and will have none if this is destroyed.
  bool has_lost() const { return failed_ || !steps_.empty(); }
  // Whether the tensor is a result that has no memory yet.
  bool is_deferred(const Tensor& tensor) const { return tensor && tensor->storage == missing_.storage(); }

  // Makes `calls` the recorder of the calling thread's calls, or none if it is null, until the destructor runs.
  class Use {
   public:
    explicit Use(DeferredCalls* calls) : before_(std::exchange(CallScope::current().recorder, calls)) {}
    ~Use() { CallScope::current().recorder = before_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    CallRecorder* const before_;
  };

 private:
  struct Step {
    const Op* op = nullptr;
    absl::InlinedVector<Arg, 4> args;        // tensors are those of `tensors`
    absl::InlinedVector<Tensor, 4> tensors;  // by argument
    std::string text;                        // of an argument
    Tensor result;
    uint32_t site = 0;
    uint64_t first_result = 0;
    DType default_dtype = DType::kFloat32;
  };

  bool may_defer(const Call& call) const;
  bool may_reduce(const Call& call) const;
  bool fits(const Call& call) const;  // in one loop with the other calls
  bool reads_deferred(const Call& call) const;
  size_t operands(const Call& call) const;
  void add(Call& call);
  uint64_t held_bytes() const;  // of arguments that only steps refer to
  void run_one(Step& step);
  void run_together(std::vector<Step*> steps, const std::vector<bool>& kept);

  const int64_t min_elements_;
  const MissingValues missing_;  // the storage of all results
  std::vector<Step> steps_;
  size_t operands_ = 0;  // of all steps
  bool failed_ = false;
};

}  // namespace tt
