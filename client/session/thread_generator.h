// The random numbers of a thread that has a generator of its own, such as a worker of a data loader: they do not depend
// on what the session's other threads draw, and do not change the others' numbers.
//
// An engine has one generator per session. A call that draws in such a thread is issued between instructions that put
// the thread's state into the session's generator and restore the session's. GeneratorTurns keeps the draws of other
// threads out of these instructions. Not covered: draws inside of Programs.
#pragma once

#include <thread>

#include "base/mutex.h"
#include "client/session/tensor.h"
#include "engine/schema/op.h"

namespace tt::client {

// The calling thread's state (seed, offset) as get_rng_state returns it; null if the thread draws from the session's
// generator. A state of another session than a call's has no effect on the call.
Tensor& thread_generator();

// Whether an operator draws, or reads or sets the generator's state.
bool uses_generator(const Op& op);

// Orders the calls that use a session's generator. Owned by the session; thread-safe. Every such call takes this lock,
// also of threads without a generator of their own, because it must not come between the instructions of another
// thread's.
class GeneratorTurns {
 public:
  // Holds the turn for the duration of a scope. A thread may hold it several times, for example in a signal handler.
  class Turn {
   public:
    // While it waits, other threads of the language run.
    explicit Turn(GeneratorTurns& turns);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool is_nested() const { return nested_; }

   private:
    GeneratorTurns& turns_;
    bool nested_ = false;
  };

 private:
  bool take(bool* nested);

  Mutex mutex_;
  CondVar released_;
  std::thread::id owner_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::client
