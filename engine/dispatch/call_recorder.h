// CallRecorder: receives the calls that would be executed if their tensors had data. Set as CallScope::recorder, on
// whose thread it is called. While it is set, only tensors on the meta device can be computed.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/schema/program.h"

namespace tt {

class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  // The calls that follow are those of an instruction of a Program.
  virtual void begin(const Instruction& instruction) = 0;
  // `call` has been executed: its outputs are the results, or with `into` the tensors that it has written.
  virtual void record(const Call& call) = 0;
};

}  // namespace tt
