// CallRecorder: receives the calls that backends execute. Set as CallScope::recorder, on whose thread it is called.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt {

class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  // `call` has been executed: its outputs are the results, or with `into` the tensors that it has written.
  virtual void record(const Call& call) = 0;
};

}  // namespace tt
