// Machines for which no machine code is made.
#include "kernels/cpu/compiled/step_code.h"

namespace tt::cpu {

bool compiles_for(const char*) { return false; }

std::unique_ptr<StepCode> compile_steps(const StepSource&, const char*) { return nullptr; }

}  // namespace tt::cpu
