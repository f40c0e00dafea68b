// CallScope: state that every call on a thread inherits, such as the gradient mode, and the observer of kernels.
//
// Base class of a session's Context (session/context.h). Used by the thread on which it is current.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/dispatch/autocast.h"
#include "engine/memory/alloc_scope.h"
#include "engine/schema/error.h"
#include "engine/schema/op.h"

namespace tt {

struct Call;
class CallRecorder;
class SlotTable;

// The instruction that a scope's thread executes, and the kernel in it. Written by that thread; any thread may read it
// at any time, to sample what the engine does.
class Activity {
 public:
  void begin_instruction(uint16_t op, uint32_t site) { set(uint64_t{op} << 48 | site); }
  void end() { set(0); }
  // Sets the running kernel for the lifetime of an object.
  class Kernel {
   public:
    Kernel(Activity& activity, uint16_t op) : activity_(activity), before_(activity.get()) {
      activity.set((before_ & ~(uint64_t{0xffff} << 32)) | uint64_t{op} << 32);
    }
    ~Kernel() { activity_.set(before_); }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

   private:
    Activity& activity_;
    const uint64_t before_;
  };

  struct Now {
    uint16_t op;      // the instruction's operator; 0: none runs
    uint16_t kernel;  // the innermost kernel's operator; 0: none runs
    uint32_t site;    // the client's number for the source line; 0: unknown
  };
  Now now() const {
    const uint64_t packed = get();
    return {static_cast<uint16_t>(packed >> 48), static_cast<uint16_t>(packed >> 32), static_cast<uint32_t>(packed)};
  }

 private:
  uint64_t get() const { return packed_.load(std::memory_order_relaxed); }
  void set(uint64_t packed) { packed_.store(packed, std::memory_order_relaxed); }
  std::atomic<uint64_t> packed_{0};
};

// Where nodes of the tape save the tensors that their gradients read.
enum class SavedTensors : uint8_t {
  kShared,   // in the node, which shares their storages
  kClient,   // in the node, until the client has stored them
  kOnCpu,    // in the node, as copies on the CPU
  kCopied,   // in the node, as copies on their device
  kNowhere,  // nowhere: a function runs again before they are needed (autograd/nodes/recomputations.h)
  kTwice,    // in the node, and for a pass: the function runs again
};

class CallScope : public AllocScope {
 public:
  bool grad_enabled = true;     // set from each instruction's flags
  bool inference = false;       // results are not recorded, and cannot be recorded later
  bool detect_anomaly = false;  // check every gradient for NaN, store the call site of each node
  // Whether the next call of the dispatcher is an instruction's, to which autocast applies. The call clears it.
  bool autocasts = false;
  bool in_program = false;  // a Program runs as one instruction, which cannot be suspended
  Autocast autocast;
  SavedTensors saved_tensors = SavedTensors::kShared;
  uint64_t first_result = 0;  // the name of the running instruction's first result, or of the tensor it writes; 0: none
  // Whether float32 products and convolutions may use TF32 on devices that support it. PyTorch's defaults.
  bool allow_tf32 = false, allow_convolution_tf32 = true;
  CallRecorder* recorder = nullptr;  // receives every call that a backend executes; null: none
  Activity activity;
  bool shares_gpus = false;  // whether before_launch() must be called
  uint64_t fused = 0;        // calls executed inside another call's loop, since the executor last reset this

  // Whether before_kernel(), after_kernel(), before_instruction() and after_instructions() must be called.
  bool observes_kernels() const { return may_observe_kernels_ && observes_now(); }
  virtual void before_launch(Device) {}       // before a kernel of a GPU, which may have to wait for its turn
  virtual void before_kernel(const Call&) {}  // if it throws Error, the kernel does not run
  virtual void after_kernel(const Call&) {}   // called even if the kernel threw; the outputs may be undefined then
  // Called between two instructions of a Program that runs over `slots`. The next instruction replaces `count` of the
  // sender's. Called again when it continues after a suspension.
  virtual void before_instruction(SlotTable& /*slots*/, const Op& /*op*/, uint32_t /*count*/, uint32_t /*site*/) {}
  // Called after the last instruction of a Program, and when an instruction is suspended.
  virtual void after_instructions(bool /*suspended*/) {}
  // An instruction is not executed, because an argument is poisoned with `error`; see SessionService::skipped.
  virtual void on_skipped(const Op& /*op*/, Args /*args*/, const Error& /*error*/, uint32_t /*site*/) {}
  // Host memory of the session's bookkeeping, not counting its slots.
  virtual uint64_t bookkeeping_bytes() const { return 0; }

  // The calling thread's scope, or one with the default values if none is current.
  static CallScope& current();

 protected:
  // Called only while may_observe_kernels_ is set, so that other calls avoid the virtual call.
  virtual bool observes_now() const { return false; }

  bool may_observe_kernels_ = false;
};

}  // namespace tt
