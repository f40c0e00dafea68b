#include "engine/program/passes/set_device.h"

#include <algorithm>
#include <vector>

#include "engine/schema/op.h"

namespace tt {
namespace {

bool takes_tensors(const Op& op) {
  return std::any_of(op.params.begin(), op.params.end(), [](const Param& param) {
    return param.type == ParamType::kTensor || param.type == ParamType::kTensors;
  });
}

}  // namespace

void set_device(Program* program, Device to, std::optional<Device> from) {
  for (Instruction& instruction : program->mutable_instructions()) {
    const auto& params = instruction.op->params;
    std::vector<Arg> args(instruction.args.begin(), instruction.args.end());
    bool is_changed = false;
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].type != ParamType::kDevice) continue;
      while (args.size() <= i) args.push_back(params[args.size()].default_value);
      // Without a device, a new tensor is on that of the arguments, or on the CPU if there are none.
      if (args[i].is_none() && takes_tensors(*instruction.op)) continue;
      const int64_t named = args[i].is_none() ? Device{}.encode() : args[i].integer;
      if (from && named != from->encode()) continue;
      args[i] = Arg(to);
      is_changed = true;
    }
    if (is_changed) instruction.args = program->copy_args(args);
  }
}

}  // namespace tt
