// Executor: runs a Program's instructions in order against a slot table.
//
// One per session; the caller holds the session's lock and has made its Context current. Keeps the account's figure of
// the session's bookkeeping; an instruction that the account has no room for fails with "out of memory".
#pragma once

#include <cstdint>

#include "engine/program/program.h"
#include "engine/program/slot_table.h"
#include "engine/program/suspension.h"

namespace tt {

// An error of the program itself, as opposed to a failed operation: an unknown slot, a name in use, a wrong argument
// kind. The instruction was not run, and its sender is broken or hostile; everything before it stands.
struct ProgramFault {
  size_t instruction = 0;  // by the sender's count
  Error error;
};

struct ExecutorStats {
  uint64_t instructions = 0;
  uint64_t fused = 0;  // instructions that ran as part of another's loop
  uint64_t failed = 0;
};

class Executor {
 public:
  // Runs `program` from its start, or on from the instruction that was suspended. Returns null once it has run; else
  // what its next instruction waits for: call again with the same arguments when that is ready, or clear().
  // An operation that fails poisons its results and the program goes on. Tensors that it should have changed in place
  // are withheld (SlotTable). Throws ProgramFault, also where bookkeeping goes on growing beyond the account's limit.
  std::shared_ptr<Suspension> run(const Program& program, SlotTable& slots);
  const ExecutorStats& stats() const { return stats_; }
  // Forgets what it keeps between programs, and a program that was suspended.
  void clear();

 private:
  void run_one(const Instruction& instruction, SlotTable& slots);
  PoisonRef check_room(const Instruction& instruction, const SlotTable& slots);

  ExecutorStats stats_;
  size_t next_ = 0;       // of the suspended program's instructions
  bool resumed_ = false;  // that instruction was begun: what it releases is released
  bool roomy_ = true;     // the account has room for the bookkeeping of an ordinary instruction
  PoisonRef no_room_;     // of the first instruction that was refused, for all that are until it has
};

}  // namespace tt
