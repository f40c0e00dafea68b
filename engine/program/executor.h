// Executor: runs a Program's instructions in order against a slot table.
//
// One per session; the caller holds the session's lock and has made its Context current. Keeps the account's figure of
// the session's bookkeeping; an instruction that the account has no room for fails with "out of memory".
#pragma once

#include <cstdint>

#include "engine/program/program.h"
#include "engine/program/slot_table.h"

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
  // An operation that fails poisons its results and the program goes on. Tensors that it should have changed in place
  // are withheld (SlotTable). Throws ProgramFault, also where bookkeeping
  // goes on growing beyond the account's limit.
  void run(const Program& program, SlotTable& slots);
  const ExecutorStats& stats() const { return stats_; }
  // Forgets what it keeps between programs.
  void clear() { no_room_ = nullptr; }

 private:
  void run_one(const Instruction& instruction, SlotTable& slots);
  std::shared_ptr<const Poison> check_room(const Instruction& instruction, const SlotTable& slots);

  ExecutorStats stats_;
  bool roomy_ = true;                      // the account has room for the bookkeeping of an ordinary instruction
  std::shared_ptr<const Poison> no_room_;  // of the first instruction that was refused, for all that are until it has
};

}  // namespace tt
