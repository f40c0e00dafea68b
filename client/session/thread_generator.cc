#include "client/session/thread_generator.h"

#include "client/connection/interruption.h"
#include "engine/schema/op_ids.h"

namespace tt::client {

Tensor& thread_generator() {
  thread_local Tensor state;
  return state;
}

bool uses_generator(const Op& op) {
  return op.is_random || op.id == op_id::kManualSeed || op.id == op_id::kGetRngState || op.id == op_id::kSetRngState;
}

bool GeneratorTurns::take(bool* nested) {
  const std::thread::id self = std::this_thread::get_id();
  MutexLock lock(mutex_);
  *nested = owner_ == self;
  if (!*nested && owner_ != std::thread::id()) return false;
  owner_ = self;
  return true;
}

GeneratorTurns::Turn::Turn(GeneratorTurns& turns) : turns_(turns) {
  InterruptTimer timer;
  while (!turns_.take(&nested_)) {
    const ReleaseInterpreterLock others_run;  // the owner may need the language's lock
    timer.check();
    MutexLock lock(turns_.mutex_);
    if (turns_.owner_ != std::thread::id()) turns_.released_.wait_for(turns_.mutex_, kInterruptInterval);
  }
}

GeneratorTurns::Turn::~Turn() {
  if (nested_) return;
  MutexLock lock(turns_.mutex_);
  turns_.owner_ = std::thread::id();
  turns_.released_.notify_all();
}

}  // namespace tt::client
