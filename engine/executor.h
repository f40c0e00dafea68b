// Executor: runs a Program's instructions in order against a slot table.
//
// Stateless between calls; the caller holds the session's lock and has made its Context current.
#pragma once

#include <cstdint>

#include "engine/program.h"
#include "engine/slot_table.h"

namespace tt {

// What went wrong with the program itself, as opposed to a failed operation: an unknown slot, a
// name in use, a wrong argument kind. The instruction was not run, and its sender is lying or
// broken; everything before it stands.
struct ProgramFault {
  size_t instruction = 0;
  Error error;
};

struct ExecutorStats {
  uint64_t instructions = 0;
  uint64_t fused = 0;  // instructions that ran as part of another's loop
  uint64_t failed = 0;
};

class Executor {
 public:
  // An operation that fails poisons its results and the program goes on. Throws ProgramFault.
  void run(const Program& program, SlotTable& slots);
  const ExecutorStats& stats() const { return stats_; }

 private:
  void run_one(const Instruction& instruction, SlotTable& slots);
  ExecutorStats stats_;
};

}  // namespace tt
