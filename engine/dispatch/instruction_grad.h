// InstructionGrad: whether the instruction of a session that a thread executes may be recorded for a backward pass.
//
// CallScope::grad_enabled is that of one call; this is the same for all calls of a Program and of a backward pass. The
// executor sets it for each instruction. True on other threads.
#pragma once

namespace tt {

class InstructionGrad {
 public:
  static bool is_enabled() { return enabled_; }
  static void set(bool enabled) { enabled_ = enabled; }

 private:
  static inline thread_local constinit bool enabled_ = true;
};

}  // namespace tt
