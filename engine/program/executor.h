// Executor: runs a Program's instructions in order against a slot table.
//
// One per session. The caller holds the session's lock and has made its Context current. Updates the bookkeeping bytes
// of the session's account; an instruction that exceeds the account's limit fails with "out of memory".
#pragma once

#include <cstdint>

#include "engine/program/slot_table.h"
#include "engine/program/suspension.h"
#include "engine/schema/program.h"

namespace tt {

struct CodedStep;

// An error in the program itself, as opposed to a failed operation: an unknown slot, a name in use, a wrong argument
// kind. The instruction was not executed; earlier instructions keep their effects. Indicates a faulty or hostile
// sender.
struct ProgramFault {
  size_t instruction = 0;  // index among the sender's instructions
  Error error;
};

struct ExecutorStats {
  uint64_t instructions = 0;
  uint64_t fused = 0;  // instructions executed inside another instruction's loop
  uint64_t failed = 0;
};

class Executor {
 public:
  static constexpr size_t kAll = SIZE_MAX;

  // Executes the first `count` of the sender's instructions, except those that ran in earlier calls: fused instructions
  // are executed together, and the last call for a program must be one with kAll. Returns null when done; otherwise the
  // Suspension that the next instruction waits for: call again with the same arguments when it is ready, or call
  // clear().
  // A failed operation poisons its results, and execution continues. Of a chain of pointwise calls, the results are
  // poisoned that depend on what has failed; all results of a chain that draws random numbers. Tensors that it should
  // have changed in place are withheld (SlotTable). Throws ProgramFault, also if bookkeeping keeps growing beyond the
  // account's limit.
  std::shared_ptr<Suspension> run(const Program& program, SlotTable& slots, size_t count = kAll);
  const ExecutorStats& stats() const { return stats_; }
  // For a session that another process has begun.
  void set_stats(const ExecutorStats& stats) { stats_ = stats; }
  // Until it is called with null, the values of the session's tensors are not available: an instruction that needs
  // values fails with `error`, unless an argument has an error already. Instructions without tensors, such as
  // factories, and views are executed. Requires error->keeps_targets: the tensors that a failed instruction should have
  // changed are withheld and lose nothing; if it has no results, so are all its tensors.
  void set_unavailable(PoisonRef error) { unavailable_ = std::move(error); }
  // Whether an instruction refers to tensors: its operator has parameters for them, or it writes to existing ones.
  static bool uses_tensors(const Instruction& instruction);
  // Discards the state kept between programs, including a suspended program.
  void clear();

 private:
  void run_one(const Instruction& instruction, SlotTable& slots);
  bool run_steps(const Instruction& chain, SlotTable& slots);
  SlotValue run_step(const CodedStep& step, const Instruction& chain, Args args, PoisonRef poison, SlotTable& slots);
  bool has_room(const SlotTable& slots) const;
  PoisonRef check_room(const Instruction& instruction, Args args, const SlotTable& slots);

  ExecutorStats stats_;
  size_t next_ = 0;  // index of the instruction at which the next call continues
  size_t done_ = 0;  // number of the sender's instructions before that one
  // The suspended instruction was started before: the names that it releases are already removed.
  bool resumed_ = false;
  // The account has room for an ordinary instruction's bookkeeping, and nothing is unavailable.
  bool has_host_room_ = true;
  PoisonRef unavailable_;
  // The error of the first instruction that exceeded the account's limit; reused until there is room again.
  PoisonRef out_of_memory_;
};

}  // namespace tt
