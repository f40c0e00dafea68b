#include "engine/program/passes/stateful.h"

#include <algorithm>
#include <string_view>

#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// Whether the argument of this name is a number that is certainly 0.
bool is_zero(const Instruction& call, std::string_view name) {
  const auto& params = call.op->params;
  const auto at = std::find_if(params.begin(), params.end(), [&](const Param& param) { return param.name == name; });
  const auto i = static_cast<size_t>(at - params.begin());
  return i < call.args.size() && call.args[i].is_real_number() && call.args[i].to_double() == 0;
}

}  // namespace

bool is_stateful(const Instruction& instruction) {
  if (instruction.op->is_random) return true;
  switch (instruction.op->id) {
    case op_id::kLstm:
    case op_id::kGru:
    case op_id::kRnn:  // draw what they drop between layers
      return !is_zero(instruction, "dropout") && !is_zero(instruction, "train");
    case op_id::kGetRngState:
    case op_id::kGetNumThreads:
    case op_id::kProfilerClock:
    case op_id::kEventElapsed:
    case op_id::kEventPassed:
    case op_id::kMemoryStats: return true;
    default: return false;
  }
}

}  // namespace tt
