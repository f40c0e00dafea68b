// CallRecorder: receives the calls that backends would execute. It records calls of tensors without data, or executes
// calls later. Set as CallScope::recorder, on whose thread it is called. Calls within a kernel are part of the
// kernel's, and are executed without it.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/schema/program.h"

namespace tt {

class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  // The calls that follow are those of an instruction of a Program.
  virtual void begin(const Instruction& /*instruction*/) {}
  // Returns true if `call` has its results, whose values may not be computed yet; it is not executed then. Returns
  // false if it has to be executed. Throws Error if it cannot be, or of an earlier call.
  virtual bool take(Call& call) = 0;
  // `call` has been executed: its outputs are the results, or with `into` the tensors that it has written.
  virtual void record(const Call& /*call*/) {}
};

}  // namespace tt
