// CallScope: what every call on a thread inherits: gradient mode, and the observer of kernels.
//
// A session's Context (session/context.h) is one. Used by the thread that it is current on.
#pragma once

#include <cstdint>

#include "engine/memory/alloc_scope.h"

namespace tt {

struct Call;
class SlotTable;

class CallScope : public AllocScope {
 public:
  bool grad_enabled = true;     // set from each instruction's flags
  bool inference = false;       // results are never recorded, and cannot be later
  bool detect_anomaly = false;  // check every gradient for NaN, remember where nodes were made
  bool allow_tf32 = false;      // float32 may be multiplied with fewer bits, by devices that have units for it
  uint64_t fused = 0;           // calls that ran as part of another's loop, since the executor counted them

  // Whether before_kernel(), after_kernel() and before_instruction() have anything to do.
  bool observes_kernels() const { return may_observe_kernels_ && observes_now(); }
  virtual void before_kernel(const Call&) {}  // may throw Error: the kernel does not run then
  virtual void after_kernel(const Call&) {}
  // Between two instructions of a Program that runs over `slots`.
  virtual void before_instruction(SlotTable& /*slots*/) {}
  // Host memory of the session's bookkeeping beside its slots.
  virtual uint64_t bookkeeping_bytes() const { return 0; }

  // The calling thread's; one with the defaults above where none was made current.
  static CallScope& current();

 protected:
  // Asked only while may_observe_kernels_ is set, so that other calls pay for no virtual call.
  virtual bool observes_now() const { return false; }

  bool may_observe_kernels_ = false;
};

}  // namespace tt
