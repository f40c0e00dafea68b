#include "engine/program/passes/writes.h"

#include <algorithm>

#include "engine/schema/read_only.h"

namespace tt {

bool writes_in_place(const Instruction& instruction) {
  if ((instruction.flags & Instruction::kInto) != 0) return true;
  const auto& params = instruction.op->params;
  for (size_t i = 0; i < instruction.args.size() && i < params.size(); ++i) {
    if (params[i].written && !instruction.args[i].is_none()) return writes_arguments(*instruction.op, instruction.args);
  }
  return false;
}

bool writes_in_place(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const Instruction& instruction) { return writes_in_place(instruction); });
}

}  // namespace tt
